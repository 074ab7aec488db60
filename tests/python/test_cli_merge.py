"""``sardonyx merge`` as users run it: the kernel's counters, real processes, bad images."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.native
PAGE = 4096
MEASURED = Path(__file__).resolve().parents[2] / "crates/sardonyx/tests/merge/linux-6.18.csv"
KSM = Path("/sys/kernel/mm/ksm")


def sardonyx(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """The program as a shell runs it."""
    ended = subprocess.run(
        [sys.executable, "-m", "sardonyx", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended


def merged(*arguments: object) -> Any:
    """What the command writes to ``--json -``."""
    return json.loads(sardonyx("merge", *arguments, "--json", "-").stdout)


def page(number: int) -> bytes:
    return random.Random(number).randbytes(PAGE) if number else bytes(PAGE)


def image(path: Path, *numbers: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(page, numbers)))
    return path


@pytest.mark.parametrize("label", ["cow_smart1", "paper_uzp1_smart1", "same_mps16"])
def test_the_kernels_counters_come_out_of_the_command(label: str, tmp_path: Path) -> None:
    with MEASURED.open() as file:
        rows = [row for row in csv.DictReader(file) if row["mix"] == label]
    mix, *knobs = label.split("_")
    pages = 10_000 if mix == "paper" else 4096
    passes = str(len(rows))
    sardonyx("merge", "generate", mix, tmp_path / "vm", "--pages", pages, "--passes", passes)
    sets = []
    for knob in knobs:
        name = knob.rstrip("0123456789")
        key = {"smart": "smart_scan", "uzp": "use_zero_pages", "mps": "max_page_sharing"}[name]
        value = knob.removeprefix(name)
        sets += ["--set", f"ksm.{key}={value}"]
    answer = merged(tmp_path / "vm", "--passes", passes, "--no-what-if", *sets)
    (run,) = answer["runs"]
    assert run["design"] == "ksm"
    for row, counters in zip(rows, run["passes"], strict=True):
        assert counters == {name: int(row[name]) for name in counters}
        assert len(counters) == 11


def test_pageforge_saves_what_ksm_saves_and_a_run_ends_when_it_has_settled(tmp_path: Path) -> None:
    a = image(tmp_path / "a.raw", 1, 2, 3, 0, 0, 4)
    b = image(tmp_path / "b.raw", 3, 2, 5, 0, 6, 7)
    answer = merged(a, b, "--kernel", "paper", "--designs", "none,ksm,pageforge")
    none, ksm, pageforge = answer["runs"]
    assert none["metrics"]["saved_pages"] == 0
    for run in (ksm, pageforge):
        metrics = run["metrics"]
        assert (metrics["saved_pages"], metrics["saved_zero_pages"]) == (4, 2)
        assert metrics["settled_after_passes"] == 2
        assert len(run["passes"]) == 12
    assert ksm["metrics"]["pages"] == pageforge["metrics"]["pages"]
    assert pageforge["metrics"]["hardware"]["comparisons"] > 0


def test_why_not_owners_and_what_if(tmp_path: Path) -> None:
    near = bytearray(page(1))
    near[300] ^= 1
    first = image(tmp_path / "web-1" / "1.raw", 1, 2, 3, 4)
    image(tmp_path / "web-1" / "2.raw", 1, 2, 3, 5)
    other = image(tmp_path / "db.raw", 9, 2, 3)
    other.write_bytes(bytes(near) + other.read_bytes()[PAGE:])
    web = image(tmp_path / "web-2.raw", 2)
    machines = (first.parent, other, web)
    out = tmp_path / "out"
    answer = merged(*machines, "--owner", "web=web*", "--owner", "db=db.raw", "--out", out)
    why = answer["why_not"]
    assert (why["pages"], why["merged"], why["changed"], why["nearly_identical"]) == (8, 5, 1, 2)
    assert why["near_by_bytes"] == [2, 0, 0, 0] and why["near_by_offset"][1] == 2
    assert why["examples"][0]["bytes"] == 1 and why["examples"][0]["first"] == 300
    assert answer["runs"][0]["metrics"]["saved_pages"] == 3
    owners = {row["owner"]: row["metrics"]["saved_pages"] for row in answer["owners"]["owners"]}
    assert owners == {"web": 1, "db": 0}
    assert any(row["set"] == [["ksm.use_zero_pages", "true"]] for row in answer["what_if"])
    assert (out / "report.html").stat().st_size > 10_000
    assert json.loads((out / "merge.json").read_text()) == answer


def core(path: Path, segments: list[tuple[int, int, bytes]], physical: bool = False) -> Path:
    """An ELF core: (address, bytes in memory, bytes in the file) a segment."""
    count = len(segments)
    offset = PAGE
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0
    )
    body = b""
    for address, size, data in segments:
        places = (0, address) if physical else (address, 0)
        head += struct.pack("<IIQQQQQQ", 1, 6, offset, *places, len(data), size, PAGE)
        body += data
        offset += len(data)
    path.write_bytes(head.ljust(PAGE, b"\0") + body)
    return path


@pytest.mark.parametrize("physical", [False, True])
def test_cores_of_processes_and_of_machines(tmp_path: Path, physical: bool) -> None:
    dump = core(
        tmp_path / "core",
        [(0x10000, 3 * PAGE, page(1) + page(2)), (0x40000, PAGE, page(1))],
        physical,
    )
    answer = merged(dump, image(tmp_path / "raw", 2), "--no-what-if")
    assert answer["runs"][0]["metrics"]["saved_pages"] == 2
    assert answer["machines"][0]["pages"] == 3
    assert answer["machines"][0]["not_in_image"] == 1


def bad_images(folder: Path) -> Iterator[tuple[Path, str]]:
    short = folder / "short.raw"
    short.write_bytes(page(1) + b"x")
    yield short, "is cut short by 4095"
    whole = core(folder / "whole", [(0x1000, 2 * PAGE, page(1) + page(2))])
    cut = folder / "cut"
    cut.write_bytes(whole.read_bytes()[:-100])
    yield cut, "is cut short: the segment at 0x1000 lacks 100 bytes"
    yield core(folder / "odd", [(0x1000, 100, b"y" * 100)]), "is not made of pages of 4096"
    overlap = [(0x1000, 2 * PAGE, page(1) * 2), (0x2000, PAGE, page(1))]
    yield core(folder / "twice", overlap), "two segments hold the page at 0x2000"
    (folder / "empty.raw").touch()
    yield folder / "empty.raw", "is empty"
    (folder / "none").mkdir()
    yield folder / "none", "has no snapshots"
    packed = folder / "vm.raw.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + page(1))
    yield packed, "compressed with zstd; unpack it"
    yield folder / "nowhere", "No such file"
    (folder / "elf").write_bytes(b"\x7fELF\x02\x01\x01")
    yield folder / "elf", "cut short in its header"


def test_a_bad_image_is_one_line_with_the_remedy_and_leaves_nothing(tmp_path: Path) -> None:
    for path, problem in bad_images(tmp_path):
        out = tmp_path / "out"
        ended = sardonyx("merge", path, "--out", out, status=2)
        assert ended.stdout == "" and ended.stderr.count("\n") == 1
        assert problem in ended.stderr and str(path) in ended.stderr
        assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "no machine"),
        (("--set", "ksm.smartscan=1"), 'did you mean "ksm.smart_scan"'),
        (("--set", "ksm.max_page_sharing=1"), "give 2 to"),
        (("--kernel", "linux-5"), "did you mean"),
        (("--designs", "pagforge"), 'did you mean "pageforge"'),
        (("--owner", "a=nobody*"), "no machine left that is called so"),
        (("--mapping", "heap"), "give --pid"),
    ],
)
def test_bad_options(arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    machine = [image(tmp_path / "a.raw", 1)] if arguments else ["--passes", 1]
    ended = sardonyx("merge", *machine, *arguments, status=2)
    assert problem in ended.stderr and ended.stderr.count("\n") == 1


HOLDER = """
import mmap, sys
pages = mmap.mmap(-1, 64 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
pages.madvise(mmap.MADV_NOHUGEPAGE)
for at in range(64):
    pages[at * 4096 : at * 4096 + 8] = (at // 8 + 1).to_bytes(8, "little")
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """A process with eight contents in eight pages each."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    process.communicate()


def test_a_live_process(holder: subprocess.Popen[str]) -> None:
    answer = merged("--pid", holder.pid, "--every", "0.1", "--no-what-if", "--designs", "ksm")
    process = answer["machines"][0]["process"]
    assert process["anonymous"] >= 64 and process["shared_already"] > 0
    assert answer["runs"][0]["metrics"]["saved_pages"] >= 56
    assert answer["snapshots"] == 2


def test_snapshots_of_a_process_by_the_script(
    holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    script = Path(__file__).resolve().parents[2] / "tools/snapshot_processes.py"
    command = [sys.executable, str(script), str(holder.pid), "--out", str(tmp_path / "cores")]
    subprocess.run([*command, "--pause", "--count", "2", "--every", "0.1"], check=True)
    (folder,) = (tmp_path / "cores").iterdir()
    assert [core.name for core in sorted(folder.iterdir())] == ["0001.core", "0002.core"]
    answer = merged(folder, "--no-what-if")
    assert answer["snapshots"] == 2 and answer["runs"][0]["metrics"]["saved_pages"] >= 56
    regions = [region["region"] for region in answer["why_not"]["regions"]]
    assert "[heap]" in regions or "[anonymous]" in regions


def test_a_process_that_exits_meanwhile_and_one_that_never_was(
    holder: subprocess.Popen[str],
) -> None:
    command = [sys.executable, "-m", "sardonyx", "merge", "--pid", str(holder.pid)]
    command += ["--every", "6"]
    reader = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while reader.poll() is None and len(os.listdir(f"/proc/{reader.pid}/task")) < 2:
        time.sleep(0.05)  # until it has begun its work
    time.sleep(2)
    holder.communicate()
    _, said = reader.communicate(timeout=60)
    assert reader.returncode == 2 and "exited meanwhile" in said
    assert "there is no such process" in sardonyx("merge", "--pid", 2**22, status=2).stderr


@pytest.mark.skipif(
    os.geteuid() != 0 or not KSM.is_dir() or (KSM / "run").read_text().strip() != "0",
    reason="needs root and a kernel whose KSM nobody uses",
)
class TestTheKernelThatRuns:
    @pytest.fixture(autouse=True)
    def _one_at_a_time(self) -> Iterator[None]:
        """Other checkouts may test on the same machine."""
        with (KSM / "run").open() as run:
            fcntl.flock(run, fcntl.LOCK_EX)
            if run.read().strip() != "0":
                pytest.skip("somebody uses KSM")
            yield

    def knobs(self) -> dict[str, str]:
        names = ("run", "pages_to_scan", "sleep_millisecs", "smart_scan", "max_page_sharing")
        return {name: (KSM / name).read_text() for name in names}

    def test_it_counts_as_the_model_does_and_keeps_its_knobs(self) -> None:
        before = self.knobs()
        answer = merged("validate", "--seed", 3, "--mixes", 2)
        assert answer["mismatches"] == [] and answer["values"] > 50
        assert self.knobs() == before

    def test_its_knobs_come_back_after_a_signal(self) -> None:
        before = self.knobs()
        for end in ("terminate", "kill"):
            command = [sys.executable, "-m", "sardonyx", "merge", "validate", "--mixes", "10000"]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            until = time.monotonic() + 30
            while self.knobs() == before and time.monotonic() < until:
                time.sleep(0.01)
            assert self.knobs() != before
            getattr(process, end)()
            process.wait(timeout=30)
            while self.knobs() != before and time.monotonic() < until:
                time.sleep(0.05)  # after SIGKILL the guard gives them back
            assert self.knobs() == before

    def test_it_is_left_alone_while_somebody_uses_it(self) -> None:
        before = self.knobs()
        (KSM / "run").write_text("1")
        try:
            ended = sardonyx("merge", "validate", status=2)
            assert "KSM is in use" in ended.stderr
        finally:
            (KSM / "run").write_text("0")
        assert self.knobs() == before
