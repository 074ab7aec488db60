"""``sardonyx merge`` as users run it: the kernel's counters, real processes, bad images."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import json
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sardonyx.cli import app
from sardonyx.runs import merging
from test_cli_native import sardonyx

PAGE = 4096
MEASURED = Path(__file__).resolve().parents[2] / "crates/merge/tests/kernel/linux-6.18.csv"
KSM = Path("/sys/kernel/mm/ksm")


def merged(*arguments: object) -> Any:
    """What the command writes to ``--json -``."""
    return json.loads(sardonyx("merge", *map(str, arguments), "--json", "-").stdout)


def in_process(*arguments: object) -> str:
    """The same without a process of its own, which costs half a second."""
    result = CliRunner().invoke(app, ["merge", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def answered(*arguments: object) -> Any:
    """The answer of such a call."""
    said = in_process(*arguments, "--json", "-")
    return json.loads(said[said.index("{") :])


def refused(*arguments: object) -> str:
    """The one line that it says of a bad question."""
    result = CliRunner().invoke(app, ["merge", *map(str, arguments)])
    assert result.exit_code == 2 and result.output.count("\n") == 1, result.output
    return result.output


def page(number: int) -> bytes:
    return random.Random(number).randbytes(PAGE) if number else bytes(PAGE)


def image(path: Path, *numbers: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(page, numbers)))
    return path


def kernels_passes() -> dict[str, list[dict[str, str]]]:
    """What the kernel counted: mix and knobs, then a row a pass."""
    with MEASURED.open() as file:
        rows = list(csv.DictReader(file))
    return {label: list(of) for label, of in groupby(rows, key=itemgetter("mix"))}


KEYS = {"smart": "smart_scan", "uzp": "use_zero_pages"}


#: All of them are met in crates/merge/tests/kernel.rs.
@pytest.mark.parametrize("label", ["cow_smart1", "paper_uzp1_smart1"])
def test_the_kernels_counters_come_out_of_the_command(label: str, tmp_path: Path) -> None:
    rows = kernels_passes()[label]
    *mix, knob = label.split("_")
    sets = []
    while (name := knob.rstrip("0123456789")) in KEYS:
        sets += ["--set", f"ksm.{KEYS[name]}={knob.removeprefix(name)}"]
        *mix, knob = mix
    kind = "_".join((*mix, knob))
    pages, snapshots = {"paper": (10_000, 1), "cow": (4096, len(rows))}[kind]
    machine = tmp_path / "vm"
    in_process("generate", kind, machine, "--pages", pages, "--passes", snapshots)
    answer = answered(machine, "--passes", len(rows), "--no-what-if", "--no-why", *sets)
    (run,) = answer["runs"]
    assert run["design"] == "ksm"
    for row, counters in zip(rows, run["passes"], strict=True):
        assert counters == {name: int(row[name]) for name in counters}
        assert len(counters) == 11


def test_why_owners_and_knobs_are_of_the_first_design_that_merges(tmp_path: Path) -> None:
    machines = [image(tmp_path / name, 1, 1, 2) for name in ("a.raw", "b.raw")]
    for designs in ("ksm", "none,pageforge"):
        answer = answered(
            *machines, "--designs", designs, "--kernel", "paper", "--owner", "a=a.raw"
        )
        assert answer["owners"]["saved_pages"] == 2 and answer["why_not"]["merged"] == 6
        assert answer["what_if"][0]["metrics"]["saved_pages"] == 4
    keys = answer["what_if"][0]["metrics"]["hardware"]
    assert keys["comparisons"] > 0
    said = refused(machines[0], "--designs", "none", "--owner", "a=a.raw")
    assert "--owner: none of --designs merges" in said


def test_the_tables_fit_a_terminal_of_80_columns(tmp_path: Path) -> None:
    said = in_process(image(tmp_path / "a.raw", 1, 1, 2), "--designs", "none,ksm,pageforge")
    rows = [line.split() for line in said.splitlines()]
    assert ["none", "0.0", "0.0", "0.0", "-", "-", "-", "-"] in rows
    assert {"none", "ksm", "pageforge"} <= {row[0] for row in rows if row}
    assert any(row and row[0] == "ksm.max_page_sharing=4294967295" for row in rows)
    assert max(map(len, said.splitlines())) <= 80


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


def core(
    path: Path,
    segments: list[tuple[int, int, bytes]],
    physical: bool = False,
    first: int = PAGE,
) -> Path:
    """An ELF core: (address, bytes in memory, bytes in the file) a segment, from byte `first`."""
    count = len(segments)
    offset = first
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 4, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0
    )
    body = b""
    for address, size, data in segments:
        places = (0, address) if physical else (address, 0)
        head += struct.pack("<IIQQQQQQ", 1, 6, offset, *places, len(data), size, PAGE)
        body += data
        offset += len(data)
    path.write_bytes(head.ljust(first, b"\0") + body)
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


#: The first bytes of files that are no memory as it is, and what is said of them.
FOREIGN = (
    (b"LibvirtQemudSave", "what `virsh save` writes, a migration stream; use `virsh dump"),
    (b"QFI\xfb\0\0\0\3", "a qcow2 disk image"),
    (b"AVML\2\0\0\0", "a compressed dump of LiME or AVML"),
    (b"makedumpfile", "a flattened kdump"),
)


def lime_dump(path: Path, ranges: list[tuple[int, bytes]]) -> Path:
    """What LiME writes: a head and the bytes of each range."""
    heads = [
        struct.pack("<IIQQQ", 0x4C694D45, 1, address, address + len(data) - 1, 0) + data
        for address, data in ranges
    ]
    path.write_bytes(b"".join(heads))
    return path


def test_a_dump_of_lime_is_read_by_address(tmp_path: Path) -> None:
    first = lime_dump(tmp_path / "first", [(0x1000, page(1) + page(2)), (0x9000, page(1))])
    answer = answered(first, image(tmp_path / "raw", 2), "--no-what-if")
    assert answer["runs"][0]["metrics"]["saved_pages"] == 2
    assert answer["machines"][0]["pages"] == 3


def test_zeros_that_may_never_have_been_touched_are_told_apart_where_the_file_can(
    tmp_path: Path,
) -> None:
    """Sixteen pages of zeros in a core, as bytes (gcore) or as a hole (the kernel)."""
    data = page(1) + page(2) + page(1)
    full = core(tmp_path / "full", [(0x10000, 19 * PAGE, data + bytes(16 * PAGE))])
    sparse = tmp_path / "sparse"
    sparse.write_bytes(full.read_bytes()[: PAGE + len(data)])
    os.truncate(sparse, full.stat().st_size)
    seen = {}
    for path, zeros in product((full, sparse), ("held", "no-holes", "none")):
        answer = answered(path, "--zeros", zeros, "--no-what-if", "--no-why")
        metrics, doubt = answer["runs"][0]["metrics"], answer.get("untouched")
        seen[path.name, zeros] = (metrics["pages"]["pages"], metrics["saved_pages"])
        if doubt is not None and doubt["zero_pages"]:
            assert (doubt["zero_pages"], doubt["saved_bytes_if_untouched"]) == (16, PAGE)
            assert doubt["saving_if_untouched"] == 1 / 3 and doubt["saving"] == 16 / 19
    assert answer["untouched"]["holes"] == 16
    zeros_are_pages, are_none = (19, 16), (3, 1)
    assert seen == {
        ("full", "held"): zeros_are_pages,
        ("full", "no-holes"): zeros_are_pages,
        ("full", "none"): are_none,
        ("sparse", "held"): zeros_are_pages,
        ("sparse", "no-holes"): are_none,
        ("sparse", "none"): are_none,
    }
    said = in_process(full, "--no-what-if", "--no-why")
    assert "16 pages of the dumps are zeros, which a dump cannot tell from pages never" in said


def test_the_answer_comes_first_with_knobs_that_keep_to_the_target(tmp_path: Path) -> None:
    machine = tmp_path / "m"
    in_process("generate", "paper", machine, "--pages", 4096, "--passes", 2)
    for pass_in, at_most, in_time in ((2, 100, True), (1, 1, False)):
        asked = ("--pass-in", pass_in, "--at-most", at_most)
        answer = answered(machine, *asked, "--no-what-if", "--no-why")
        sought = answer["advice"]["recommendation"]
        assert sought["in_time"] is in_time
        lines = sought["lines"]
        assert lines[0] == "echo none > /sys/kernel/mm/ksm/advisor_mode"
        knobs = {line.split("/")[-1]: line.split()[1] for line in lines}
        # What the lines set, asked for by itself, takes what was said.
        keys = [f"ksm.{name}={knobs[name]}" for name in ("pages_to_scan", "sleep_millisecs")]
        sets = [word for key in keys for word in ("--set", key)]
        first = answered(machine, *sets, "--passes", 1, "--no-what-if", "--no-why")
        took = first["runs"][0]["metrics"]
        assert took["seconds"] <= sought["longest_pass_seconds"] * 1.0001
        assert 100 * took["cpu_share"] <= sought["most_core_percent"] * 1.0001
        assert sought["most_core_percent"] <= at_most * 1.02
        assert (sought["longest_pass_seconds"] <= pass_in) is in_time
    said = in_process(machine, *asked, "--no-what-if", "--no-why")
    saving = answer["runs"][0]["metrics"]["saving"]
    assert said.startswith(f"Merging saves 7.7 of 16.0 MiB ({100 * saving:.1f} %):")
    assert "echo 1 > /sys/kernel/mm/ksm/run" in said and "the core's share does not allow" in said


def test_profits_breaks_and_neighbours(tmp_path: Path) -> None:
    a = image(tmp_path / "a" / "1.raw", 1, 2, 2, 3, 0, 0).parent
    image(a / "2.raw", 1, 2, 4, 3, 0, 0)
    b = image(tmp_path / "b.raw", 1, 1, 0, 7)
    c = image(tmp_path / "c.raw", 8, 9, 0)
    answer = answered(a, b, c, "--no-what-if", "--no-why")
    advice = answer["advice"]
    # 1 in three pages, zeros in four: two frames, five pages saved; thirteen items, two nodes.
    kept = 64 * (13 + 2)
    assert (advice["net_bytes"], advice["kernel_bytes"]) == (5 * PAGE - kept, kept)
    assert sum(row["net_bytes"] for row in advice["profits"]) == pytest.approx(5 * PAGE - kept, 5)
    assert [row["ksm_process_profit"] for row in advice["profits"]] == [
        3 * PAGE - 6 * 64,
        3 * PAGE - 4 * 64,
        PAGE - 3 * 64,
    ]
    assert (advice["breaks"]["equal"], advice["breaks"]["broken"]) == (9, 1)
    seen = {Path(row["tenant"]).name: row for row in advice["tenants"]}
    verdicts = {name: row["verdict"] for name, row in seen.items()}
    assert verdicts == {"a": "shares", "b.raw": "shares", "c.raw": "shares-nothing-but-zeros"}
    assert [seen["a"][key] for key in ("shared_pages", "shared_contents")] == [1, 1]
    assert [seen["b.raw"][key] for key in ("shared_pages", "guessable_pages")] == [2, 3]
    assert seen["a"]["with"] == [str(b)] and seen["b.raw"]["with"] == [str(a)]
    # Apart, a keeps a frame for 1 and one for zeros.
    assert seen["a"]["apart_costs_bytes"] == 2 * PAGE


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
    yield folder / "nowhere", "there is no such file"
    for number, (magic, problem) in enumerate(FOREIGN):
        foreign = folder / f"foreign-{number}"
        foreign.write_bytes(magic.ljust(PAGE, b"\0"))
        yield foreign, problem
    os.mkfifo(folder / "pipe")
    yield folder / "pipe", "is a pipe, so it cannot be mapped; copy it to a file"
    hole = folder / "hole.raw"
    hole.touch()
    os.truncate(hole, 16 * PAGE)
    yield hole, "is one hole"
    lime = lime_dump(folder / "lime", [(0x1000, page(1) + page(2))])
    lime_cut = folder / "lime-cut"
    lime_cut.write_bytes(lime.read_bytes()[:-1])
    yield lime_cut, "as a dump of LiME: is cut short in the range at byte 32"
    (folder / "elf").write_bytes(b"\x7fELF\x02\x01\x01")
    yield folder / "elf", "cut short in its header"


@pytest.mark.slow
def test_a_bad_image_is_one_line_with_the_remedy_and_leaves_nothing(tmp_path: Path) -> None:
    for path, problem in bad_images(tmp_path):
        out = tmp_path / "out"
        ended = sardonyx("merge", str(path), "--out", str(out), status=2)
        assert ended.stdout == "" and ended.stderr.count("\n") == 1
        assert problem in ended.stderr and str(path) in ended.stderr
        assert not out.exists()


#: An application for a moment.
MOMENT: tuple[str, ...] = (
    "time",
    "silo",
    "--set",
    "cores=2",
    "--set",
    "vms.mib=2",
    "--set",
    "window.ms=3",
)
MOMENT += ("--set", "window.warmup_ms=0", "--set", "ksm.sleep_millisecs=0", "--jobs", "1")


def test_what_merging_costs_is_asked_over_memories_of_several_designs() -> None:
    answer = answered(*MOMENT, "--memory", "no-encryption,sca,esd", "--designs", "none,ksm")
    runs = {(run["variant"].get("memory"), run["design"]): run for run in answer["runs"]}
    assert list(runs) == list(product((None, "sca", "esd"), ("none", "ksm")))
    metrics = {key: run["metrics"] for key, run in runs.items()}
    for design in ("none", "ksm"):
        plain, sca, esd = (metrics[memory, design] for memory in (None, "sca", "esd"))
        assert plain["encryption_energy_nj"] == 0 < sca["encryption_energy_nj"]
        assert plain["mean_read_latency_ns"] < sca["mean_read_latency_ns"]
        assert esd["loaded_lines_stored"] < sca["loaded_lines_stored"] == 1
        assert len({of["geomean_sojourn_ns"] for of in (plain, sca, esd)}) == 3
    assert len({metrics[memory, "ksm"]["saving"] for memory in (None, "sca", "esd")}) == 1
    alone = answered(*MOMENT, "--designs", "ksm")["runs"]
    assert alone == [runs[None, "ksm"]]


def test_what_merging_costs_is_told_in_a_table() -> None:
    said = in_process(*MOMENT, "--memory", "esd", "--designs", "none,ksm")
    rows = {tuple(row.split()[:2]): row.split() for row in said.splitlines()}
    assert rows["esd", "none"][3:5] == ["x1.00", "x1.00"]
    assert float(rows["esd", "ksm"][7]) > 20 and float(rows["esd", "ksm"][-1]) < 100


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("silo", "--memory", ","), "--memory: none given"),
        (("silo", "--designs", "pagforge"), 'did you mean "pageforge"'),
        (("sillo",), "silo"),
        (("silo", "--set", "drain.lines=all"), "drain.lines: asks what a cut after a run costs"),
    ],
)
def test_bad_options_in_time(arguments: tuple[str, ...], problem: str) -> None:
    assert problem in refused("time", *arguments)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "no machine"),
        (("--set", "ksm.smartscan=1"), 'did you mean "ksm.smart_scan"'),
        (("--set", "ksm.max_page_sharing=1"), "give 2 to"),
        (("--kernel", "linux-5"), "did you mean"),
        (("--designs", "pagforge"), 'did you mean "pageforge"'),
        (("--owner", "a=nobody*"), "no machine is called so; they are"),
        (("--owner", "a=*", "--owner", "b=a*"), "is a's already"),
        (("--mapping", "heap"), "without --pid"),
    ],
)
def test_bad_options(arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    machine = [image(tmp_path / "a.raw", 1)] if arguments else ["--passes", 1]
    ended = sardonyx("merge", *map(str, machine), *arguments, status=2)
    assert problem in ended.stderr and ended.stderr.count("\n") == 1


HOLDER = """
import mmap, os, signal, sys, time
children = []
halves = [mmap.mmap(-1, 32 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2)]
for half in halves:
    half.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(32):
        half[at * 4096 : at * 4096 + 8] = (at // 8 + 1).to_bytes(8, "little")
for line in sys.stdin:
    if line == "unmap\\n":
        halves.pop().close()
    if line == "fork\\n":
        children.append(os.fork())
        if not children[-1]:
            time.sleep(60)
    print(os.getpid(), flush=True)
for child in children:
    os.kill(child, signal.SIGKILL)
"""


class Holder:
    """A process with four contents in sixteen pages each, in two mappings."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", HOLDER]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.pid = self.process.pid
        assert self.ask("hello") == self.pid

    def ask(self, what: str) -> int:
        """Has it do something; who answers. Its pages do not change any more then."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        who = int(self.process.stdout.readline())
        while Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.001)
        return who

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def holders() -> Iterator[Callable[[], Holder]]:
    made = []

    def make() -> Holder:
        made.append(Holder())
        return made[-1]

    yield make
    for holder in made:
        holder.end()


@pytest.fixture
def holder(holders: Callable[[], Holder]) -> Holder:
    return holders()


class Reader:
    """``merge --pid ..``, which has read a first snapshot and waits for the second."""

    def __init__(self, json_to: Path, *holders: Holder) -> None:
        command = [sys.executable, "-m", "sardonyx", "merge", "--every", "4", "--no-what-if"]
        command += ["--json", str(json_to), *(f"--pid={holder.pid}" for holder in holders)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe)
        folders = {f"/proc/{holder.pid}" for holder in holders}
        while self.process.poll() is None and not folders <= self._open():
            time.sleep(0.02)
        time.sleep(1.5)

    def _open(self) -> set[str]:
        found = set()
        for number in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(os.readlink(number))
        return found

    def ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out.decode(), err.decode()


def test_a_live_process(holder: Holder) -> None:
    answer = merged("--pid", holder.pid, "--every", "0.1", "--no-what-if", "--designs", "ksm")
    process = answer["machines"][0]["process"]
    assert process["anonymous"] >= 64 and process["shared_already"] > 0
    assert answer["runs"][0]["metrics"]["saved_pages"] >= 60
    assert answer["snapshots"] == 2


def test_pages_are_known_by_digests_where_copies_take_too_much(holder: Holder) -> None:
    asked = ("--pid", holder.pid, "--every", "0.1", "--no-what-if")
    kept, let_go = answered(*asked), answered(*asked, "--memory", "64K")
    assert let_go["runs"][0]["passes"] == kept["runs"][0]["passes"]
    assert kept["runs"][0]["metrics"]["saved_pages"] >= 60
    assert let_go["advice"]["profits"] == kept["advice"]["profits"]
    near = ("nearly_identical", "unique", "not_compared")
    counts = [[answer["why_not"][key] for key in near] for answer in (kept, let_go)]
    assert counts[0][2] == 0 and counts[1] == [0, 0, sum(counts[0])] and sum(counts[0]) > 0
    said = refused(*asked, "--memory", "64K", "--designs", "pageforge")
    assert "--memory: the different pages of the processes take more than" in said


def test_memory_that_ends_is_one_line(holder: Holder) -> None:
    """Under a limit that the start of the program just fits in, whatever is asked of it."""
    run = (
        "import resource, sys; from sardonyx.cli import main; import sardonyx.runs.merging\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "most = used + (96 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))\n"
        "sys.argv[0] = 'sardonyx'; main()"
    )
    hungry = "import time; kept = bytearray(i % 251 for i in range(1 << 20)) * 400; "
    hungry += "import random; view = memoryview(kept)\n"
    hungry += "for at in range(0, len(kept), 4096): view[at : at + 8] = random.randbytes(8)\n"
    hungry += "print('ready', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hungry], stdout=subprocess.PIPE) as big:
        assert big.stdout is not None and big.stdout.readline() == b"ready\n"
        try:
            ended = subprocess.run(
                [sys.executable, "-c", run, "merge", f"--pid={big.pid}"],
                capture_output=True,
                text=True,
                timeout=600,
            )
        finally:
            big.kill()
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1 and "memory ended" in ended.stderr


def test_the_hosts_knobs_stand_beside_what_is_asked(holder: Holder) -> None:
    """Which they are is a test of Rust's, with a kernel of its own."""
    asked = ("--pid", holder.pid, "--snapshots", 1, "--no-what-if", "--no-why")
    if not merging.KSM.is_dir():
        assert answered(*asked)["host"] == []
        assert "--kernel host: this kernel has no KSM" in refused(*asked, "--kernel", "host")
        return
    as_host = answered(*asked, "--kernel", "host", "--set", "ksm.sleep_millisecs=10")
    rows = {row["key"]: (row["host"], row["asked"]) for row in as_host["host"]}
    assert rows.pop("ksm.sleep_millisecs")[1] == "10"
    assert rows and all(host == asked for host, asked in rows.values())


def test_a_process_that_exits_and_mappings_that_vanish_leave_the_others(
    holders: Callable[[], Holder], tmp_path: Path
) -> None:
    stays, goes = holders(), holders()
    reader = Reader(tmp_path / "answer.json", stays, goes)
    goes.end()
    stays.ask("unmap")
    status, said, errors = reader.ended()
    assert (status, errors) == (0, "")
    answer = json.loads((tmp_path / "answer.json").read_text())
    kept, gone = answer["machines"]
    assert kept["ended_at_pass"] is None and 32 <= kept["gone"] < 200
    assert gone["ended_at_pass"] == 2 and gone["gone"] == gone["pages"]
    metrics = answer["runs"][0]["metrics"]
    assert metrics["pages"]["pages"] == kept["pages"] - kept["gone"]
    assert metrics["saved_pages"] >= 28
    assert f"pid {goes.pid} (python" in said
    assert "exited meanwhile; from pass 2 on" in said and "are gone in the last" in said


def test_nothing_is_left_if_all_exit_waited_for_or_not(
    holders: Callable[[], Holder], tmp_path: Path
) -> None:
    waited_for, left_alone = holders(), holders()
    reader = Reader(tmp_path / "answer.json", waited_for, left_alone)
    waited_for.end()
    left_alone.process.kill()  # and stays a zombie
    status, out, said = reader.ended()
    assert (status, out, said.count("\n")) == (2, "", 1)
    assert "nothing is left to merge" in said and not list(tmp_path.iterdir())
    for pid in (waited_for.pid, left_alone.pid):
        assert f"pid {pid} (python" in said


def test_pages_that_a_fork_shares_are_counted(holder: Holder) -> None:
    alone = answered("--pid", holder.pid, "--snapshots", 1, "--no-what-if")
    holder.ask("fork")
    shared = answered("--pid", holder.pid, "--snapshots", 1, "--no-what-if")
    before, after = (answer["machines"][0]["process"]["forked"] for answer in (alone, shared))
    assert before < 64 <= after


def test_processes_that_cannot_be_read(holder: Holder) -> None:
    pid = f"--pid={holder.pid}"
    assert "there is no such process" in refused("--pid", 2**22)
    assert "is given twice" in refused(pid, pid)
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        assert "kernel thread" in refused("--pid", 2)
    nothing = refused(pid, "--mapping", "no such mapping")
    assert "no anonymous pages in memory in the mappings asked for" in nothing


HUGE = """
import mmap, time
pages = 4608
held = mmap.mmap(-1, pages * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_HUGEPAGE)
for at in range(pages):
    held[at * 4096 : at * 4096 + 8] = (0 if at % 4 else at // 8 + 1).to_bytes(8, "little")
print(flush=True)
time.sleep(600)
"""


def test_zeros_in_huge_pages_that_split_are_said(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HUGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "\n"
            asked = (f"--pid={process.pid}", "--no-what-if", "--no-why")
            said = sardonyx("merge", *asked, "--json", str(tmp_path / "m.json"))
        finally:
            process.kill()
    profit = json.loads((tmp_path / "m.json").read_text())["advice"]["profits"][0]
    if not profit["huge_pages"]:
        pytest.skip("huge pages are not known, or this kernel has given none")
    # Three of four pages; some huge pages may be the interpreter's own.
    each = 384 * profit["huge_pages_split"]
    assert 0 < profit["zeros_in_split"] <= each and profit["zeros_in_split"] % 384 == 0
    assert f"{profit['zeros_in_split']:,} pages of zeros are in these" in said.stdout


def scanned_too() -> list[str]:
    """The commands of other processes in which the kernel's KSM has pages."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            items = re.search(r"ksm_rmap_items (\d+)", (process / "ksm_stat").read_text())
            if items and int(items[1]) and int(process.name) != os.getpid():
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append(f"{process.name} {' '.join(words)}")
    return found


class DrivenKernel:
    """The running kernel's KSM over pages of this process, a scan at a time."""

    def __init__(self, pages: int) -> None:
        wanted = {"stable_node_chains_prune_millisecs": 0, "smart_scan": 1, "use_zero_pages": 0}
        wanted |= {"pages_to_scan": 4_000_000_000, "sleep_millisecs": 10_000_000}
        self.knobs = {name: (KSM / name).read_text() for name in wanted}
        self.memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.memory.madvise(mmap.MADV_NOHUGEPAGE)
        self.memory.madvise(mmap.MADV_MERGEABLE)
        for name, value in wanted.items():
            (KSM / name).write_text(str(value))
        self.grown = {name: self._count(name) for name in ("pages_scanned", "pages_skipped")}
        self.counted: list[dict[str, int]] = []

    def _count(self, name: str) -> int:
        return int((KSM / name).read_text())

    def fill(self, number: int, data: bytes) -> None:
        self.memory[number * PAGE : (number + 1) * PAGE] = data

    def unmap(self, number: int) -> None:
        self.memory.madvise(mmap.MADV_DONTNEED, number * PAGE, PAGE)

    def scan(self, turn: int) -> None:
        before = self._count("full_scans")
        knob, value = ("sleep_millisecs", 10_000_000 + turn % 2) if turn else ("run", 1)
        (KSM / knob).write_text(str(value))
        while self._count("full_scans") == before:
            time.sleep(0.001)
        if others := scanned_too():
            pytest.skip(f"the kernel has scanned others' pages as well: {', '.join(others)}")
        names = ("shared", "sharing", "unshared", "volatile", "skipped", "scanned")
        counts = {f"pages_{name}": self._count(f"pages_{name}") for name in names}
        for name, start in self.grown.items():
            counts[name] -= start
        self.counted.append(counts)

    def end(self) -> None:
        (KSM / "run").write_text("2")
        for name, value in self.knobs.items():
            (KSM / name).write_text(value)
        (KSM / "run").write_text("0")
        self.memory.close()


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

    def test_pages_that_vanish_and_come_back_count_as_there(self, tmp_path: Path) -> None:
        drawn, count = random.Random(5), 400
        held = {number: drawn.randrange(60) for number in range(count)}
        kernel = DrivenKernel(count)
        try:
            for number, content in held.items():
                kernel.fill(number, page(content))
            for turn in range(10):
                for number in drawn.sample(range(count), 40 if turn else 0):
                    if number in held and drawn.random() < 0.6:
                        kernel.unmap(number)
                        del held[number]
                    else:
                        held[number] = 60 * turn + drawn.randrange(60)  # what it did not hold
                        kernel.fill(number, page(held[number]))
                kernel.scan(turn)
                segments = [(PAGE * (16 + at), PAGE, page(held[at])) for at in sorted(held)]
                (tmp_path / "vm").mkdir(exist_ok=True)
                core(tmp_path / "vm" / f"{turn:02}", segments, first=32 * PAGE)
        finally:
            kernel.end()
        answer = merged(tmp_path / "vm", "--passes", 10, "--no-what-if", "--no-why")
        for there, here in zip(kernel.counted, answer["runs"][0]["passes"], strict=True):
            assert {name: here[name] for name in there} == there
        assert kernel.counted[-1]["pages_sharing"] > 100
