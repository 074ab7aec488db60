"""``sardonyx trace record`` and ``mix`` as a shell runs them; QEMU and a C compiler are there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sardonyx.tracing.record import EMULATORS, PLUGIN
from test_cli_native import sardonyx

pytestmark = pytest.mark.machine


def provenance(trace: Path) -> dict[str, object]:
    metadata = pq.read_metadata(trace).metadata or {}
    found: dict[str, object] = json.loads(metadata[b"sardonyx.trace"])
    return found


def compiled(where: Path, source: str, *options: str) -> str:
    (where / "p.c").write_text(source)
    subprocess.run(["cc", "-O1", "-o", "p", "p.c", *options], cwd=where, check=True)
    return str(where / "p")


def failure(*arguments: str, where: Path) -> str:
    """One line, status 2, and no file that was not there."""
    before = sorted(where.rglob("*"))
    ended = sardonyx("trace", "record", *arguments, where=where, status=2)
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert sorted(where.rglob("*")) == before
    return ended.stderr


def test_a_recording_compares_and_says_where_it_comes_from(tmp_path: Path) -> None:
    sql = "create table t(a, b); with recursive n(x) as (select 1 union all select x + 1 from n"
    sql += " where x < 30000) insert into t select x, hex(x) from n; select count(*) from t;"
    small = ("--llc", "256K:8", "--l2", "64K:8", "--json", "said.json")
    ended = sardonyx(
        "trace", "record", "-o", "t.parquet", *small, "--", "sqlite3", ":memory:", sql,
        where=tmp_path,
    )  # fmt: skip
    assert ended.stdout == "30000\n"  # the program's own, and nothing of ours
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["status"] == 0 and said["traces"][0]["complete"]
    found = provenance(tmp_path / "t.parquet")
    assert found["program"] == "sqlite3" and found["level"] == "memory"
    assert found["records"] == said["traces"][0]["records"]
    sardonyx("trace", "check", "t.parquet", where=tmp_path)
    options = ("--designs", "baseline,esd", "--limit", "2000", "--json", "-")
    compared = sardonyx("compare", "t.parquet", *options, where=tmp_path)
    assert len(json.loads(compared.stdout)["runs"]) == 2


def test_a_program_that_cannot_run_is_one_line(tmp_path: Path) -> None:
    assert "no such program" in failure("--", "no-such-program-1", where=tmp_path)
    (tmp_path / "text").write_text("hello")
    assert "chmod" in failure("--", "./text", where=tmp_path)
    (tmp_path / "text").chmod(0o755)
    assert "neither a program nor a script" in failure("--", "./text", where=tmp_path)
    binary = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    binary[18] = 183
    (tmp_path / "arm").write_bytes(binary)
    (tmp_path / "arm").chmod(0o755)
    assert "64-bit ARM" in failure("--", "./arm", where=tmp_path)
    assert "--llc 3M:16" in failure("--llc", "3M:16", "--", "ls", where=tmp_path)
    assert "does not exist" in failure("-o", "none/t.parquet", "--", "ls", where=tmp_path)


def test_an_emulator_that_cannot_record_is_one_line(tmp_path: Path) -> None:
    def refused(emulator: str) -> str:
        said = failure("--qemu", emulator, "--", "ls", where=tmp_path)
        assert Path(emulator).name in said
        return said

    assert "is not there" in refused("/none") and "make qemu" in refused("/none")
    static = compiled(tmp_path, "int main(void) { return 0; }", "-static")
    assert "linked statically" in refused(static)
    (tmp_path / "text").write_text("hello")
    assert "chmod +x" in refused("./text")
    binary = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    binary[18] = 183
    (tmp_path / "arm").write_bytes(binary)
    (tmp_path / "arm").chmod(0o755)
    assert "64-bit ARM" in refused("./arm")
    # As QEMU 7.2 says it, and what loads no plugins.
    old = "plugin requires API version 4, but this QEMU supports only up to version 1"
    for name, script in (("old", f"echo 'TCG {old}' >&2; exit 1"), ("none", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    assert old in refused("./old")
    assert "loads no plugins" in refused("./none")
    shutil.copy(EMULATORS[1], tmp_path / "own")
    sardonyx("trace", "record", "-o", "t.parquet", "--qemu", "./own", "--", "true", where=tmp_path)


def test_the_status_is_the_programs(tmp_path: Path) -> None:
    options = ("trace", "record", "-o", "t.parquet", "--json", "said.json")
    sardonyx(*options, "--", "sh", "-c", "exit 7", where=tmp_path, status=7)
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["status"] == 7 and said["traces"][0]["complete"]
    # We end it, so the status is ours.
    busy = "trap 'exit 9' TERM; while true; do echo; done"
    sardonyx(*options, "--limit", "100", "--", "sh", "-c", busy, where=tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
@pytest.mark.parametrize("level", ["memory", "cpu"])
def test_a_program_that_gives_up_its_rights_is_recorded_on(tmp_path: Path, level: str) -> None:
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    shown = ("sh", "-c", "id -u; exec true")
    options = ("trace", "record", "-o", "t.parquet", "--level", level, "--verify")
    ended = sardonyx(*options, "--", *drop, *shown, where=tmp_path)
    assert ended.stdout == "65534\n"
    execs = provenance(tmp_path / "t.parquet")["execs"]
    assert isinstance(execs, list) and len(execs) == 2
    assert provenance(tmp_path / "t.parquet")["complete"] is True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become others")
def test_rights_that_are_needed_and_given_up_are_said(tmp_path: Path) -> None:
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    (tmp_path / "closed").mkdir(mode=0o700)
    inside = tmp_path / "closed" / "libsardonyx_recorder.so"
    shutil.copy(PLUGIN, inside)
    source = "import sys\nfrom sardonyx.tracing import record\n"
    source += "from sardonyx.__main__ import main\n"
    source += f"from pathlib import Path\nrecord.PLUGIN = Path({str(inside)!r})\nmain()\n"
    command = ("trace", "record", "-o", "t.parquet", "--", *drop, "true")
    ended = subprocess.run(
        [sys.executable, "-c", source, *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 2, ended.stderr
    assert f"who cannot open {inside}" in ended.stderr and ended.stderr.count("error: ") == 1


def test_what_qemu_does_not_have_is_said(tmp_path: Path) -> None:
    source = "#include <sys/syscall.h>\n#include <unistd.h>\n#include <errno.h>\n"
    source += "int main(void) { syscall(SYS_io_uring_setup, 1, 0); syscall(SYS_ptrace, 0);\n"
    source += "return errno != ENOSYS; }"
    program = compiled(tmp_path, source)
    sardonyx("trace", "record", "-o", "t.parquet", "--json", "j", "--", program, where=tmp_path)
    notes = json.loads((tmp_path / "j").read_text())["traces"][0]["notes"]
    asked = "the program asked for {}, which is not there under QEMU (ENOSYS)"
    assert sorted(notes) == [asked.format("io_uring"), asked.format("ptrace")]


@pytest.mark.parametrize("options", [(), ("--level", "cpu"), ("--follow-fork",), ("--pc",)])
def test_a_recording_can_be_held_against_memory(tmp_path: Path, options: tuple[str, ...]) -> None:
    work = "{i: str(i) for i in range(2000)}; import subprocess; subprocess.run(['true', '1'])\n"
    work += "import os; os.fork() or [i * i for i in range(9999)]"
    record = ("trace", "record", "-o", "t.parquet", "--verify", "--json", "said.json")
    sardonyx(*record, *options, "--", "/usr/bin/python3", "-c", work, where=tmp_path)
    found = json.loads((tmp_path / "said.json").read_text())["traces"][0]["verified"]
    assert found["different"] == 0 and found["pages"] > 500 and found["lines"] > 10_000


def test_static_programs_are_recorded(tmp_path: Path) -> None:
    source = "#include <string.h>\nstatic char a[1 << 20];\n"
    source += "int main(int c, char **v) { memset(a, c, sizeof a); return a[77] - 1; }"
    program = compiled(tmp_path, source, "-static")
    sardonyx("trace", "record", "-o", "t.parquet", "--", program, where=tmp_path)
    sardonyx("trace", "check", "t.parquet", where=tmp_path)
    assert provenance(tmp_path / "t.parquet")["complete"] is True


KILLED = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char a[8 << 20];
static void fill(int value) {
    memset(a, value, sizeof a);
    __asm__ volatile("" : : "r"(a) : "memory");
}
int main(void) {
    fill(1);
    for (int fd = 0; fd < 1024; fd++) close(fd);
    fill(2);
    NEXT;
    return 0;
}
"""


@pytest.mark.parametrize(
    ("what", "number"),
    [("(void)0", 0), ("kill(getpid(), SIGKILL)", signal.SIGKILL), ("abort()", signal.SIGABRT)],
)
def test_no_descriptors_and_a_violent_end_leave_a_whole_trace(
    tmp_path: Path, what: str, number: int
) -> None:
    program = compiled(tmp_path, KILLED.replace("NEXT", what))
    options = ("-o", "t.parquet", "--llc", "1M:16", "--json", "said.json")
    status = 128 + number if number else 0
    sardonyx("trace", "record", *options, "--", program, where=tmp_path, status=status)
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["traces"][0]["complete"] is (number != signal.SIGKILL)
    assert said["signal"] == (number or None)
    sardonyx("trace", "check", "t.parquet", where=tmp_path)
    # Most of what was written after the descriptors were closed is there.
    data = pq.read_table(tmp_path / "t.parquet", columns=["op", "data"]).to_pylist()
    assert sum(row["data"] == b"\2" * 64 for row in data if row["op"] == 1) > 90_000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_ends_the_recorder_has_the_trace_so_far(tmp_path: Path, number: signal.Signals) -> None:
    source = "static volatile char a[4 << 20]; int main(void) { "
    source += "for (long i = 0;; i += 64) a[i % sizeof a]++; }"
    program = compiled(tmp_path, source)
    command = [sys.executable, "-m", "sardonyx", "trace", "record", "-o", "t.parquet"]
    memory, temporary = Path("/dev/shm"), tmp_path / "tmp"
    temporary.mkdir()
    running = subprocess.Popen(
        [*command, "--llc", "1M:16", "--", program], cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip

    def rings() -> list[Path]:
        each = f"sardonyx-{os.getuid()}/sardonyx-record-*/*"
        found = [*memory.glob(each), *temporary.glob(each)]
        return [p for p in found if _maps(running.pid, p)]

    deadline = time.monotonic() + 30
    while not (mine := rings()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert mine
    time.sleep(0.5)
    running.send_signal(number)
    assert running.wait(timeout=600) == 0
    assert not any(ring.parent.exists() for ring in mine)
    assert provenance(tmp_path / "t.parquet")["complete"] is False
    sardonyx("trace", "check", "t.parquet", where=tmp_path)


def _maps(process: int, file: Path) -> bool:
    return str(file) in Path(f"/proc/{process}/maps").read_text()


RANDOM = """
#include <stdint.h>
static uint64_t a[5 << 20];
int main(void) {
    uint64_t s = 88172645463325252ull;
    for (long i = 0; i < 5 << 20; i++) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; a[i] = s; }
    return a[77] & 1;
}
"""


def test_a_full_disk_leaves_no_trace(tmp_path: Path) -> None:
    program = compiled(tmp_path, RANDOM)
    # A limit on the size of files stands in for a full disk; the ring of 16 MiB must fit.
    limited = ["prlimit", "--fsize=17000000", sys.executable, "-m", "sardonyx", "trace", "record"]
    ended = subprocess.run(
        [*limited, "-o", "t.parquet", "--llc", "1M:16", "--", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 2, ended.stderr
    assert "t.parquet: cannot be written: " in ended.stderr and "Traceback" not in ended.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p", "p.c"]


def test_windows_follow_forks_and_frames(tmp_path: Path) -> None:
    source = "#include <sys/wait.h>\n#include <unistd.h>\n#include <string.h>\n"
    source += "static char a[1 << 20]; int main(void) { if (!fork()) { memset(a, 3, sizeof a); "
    source += "_exit(0); } wait(0); memset(a, 4, sizeof a); return 0; }"
    program = compiled(tmp_path, source)
    options = "-o t.parquet --follow-fork --pages sequential --llc none"
    sardonyx("trace", "record", *options.split(), "--", program, where=tmp_path)
    for name, byte in (("t.parquet", 4), ("t.1.parquet", 3)):
        rows = pq.read_table(tmp_path / name).to_pylist()
        filled = sum(row["data"] == bytes([byte]) * 64 for row in rows)
        assert filled >= 16_383  # the array need not begin with a line
        assert max(row["line"] for row in rows) < 100_000  # frames, not addresses
    options = "-o w.parquet --skip 100 --limit 500"  # we end it then: not a signal that it died of
    sardonyx("trace", "record", *options.split(), "--", program, where=tmp_path)
    assert provenance(tmp_path / "w.parquet")["records"] == 500

    options = "-o c.parquet --level cpu --limit 20000 --read-data"
    sardonyx("trace", "record", *options.split(), "--", program, where=tmp_path)
    rows = pq.read_table(tmp_path / "c.parquet").to_pylist()
    assert {8, 9} <= {row["op"] for row in rows}
    known: set[int] = set()
    for row in rows:  # every line's contents are there when it is first touched
        assert row["line"] in known or row["data"] is not None or row["op"] not in (8, 9)
        known.add(row["line"])
        if row["op"] == 11:
            changed = int.from_bytes(row["data"][:8], "little")
            known.difference_update(range(row["line"], row["line"] + changed))

    sardonyx("trace", "mix", "t.parquet", "w.parquet", "-o", "m.parquet", where=tmp_path)
    sardonyx("trace", "check", "m.parquet", where=tmp_path)
    assert provenance(tmp_path / "m.parquet")["program"] == "p+p"


def test_children_that_are_left_out_are_counted(tmp_path: Path) -> None:
    record = ("trace", "record", "-o", "t.parquet", "--json", "t.json")
    work = ("--", "sh", "-c", "ls /none; true; ls /none; true")
    ended = sardonyx(*record, *work, where=tmp_path)
    words = "2 child processes are not in this trace; --follow-fork records each"
    assert words in " ".join(ended.stderr.split())
    notes = json.loads((tmp_path / "t.json").read_text())["traces"][0]["notes"]
    assert len([note for note in notes if words in note]) == 1
    followed = sardonyx(*record, "--follow-fork", *work, where=tmp_path)
    assert "child processes" not in followed.stderr
    alone = sardonyx(*record, "--", "ls", where=tmp_path)
    assert "child processes" not in alone.stderr


def test_a_folder_hides_no_recording(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    sardonyx("trace", "info", "redis", where=tmp_path)
