"""Whether what real file systems leave after a power cut is among what ``crash-test files`` says.

``python tools/oracle.py --platform ext4-ordered --programs 100`` makes small random programs, runs
each on a new file system of the running kernel, on a disk that writes down every write and flush,
and records it as ``sardonyx crash-test files`` does. Then the disk becomes what a cut may leave of
it: all that was flushed, and some of what came later, also torn. The kernel mounts that, recovers
its log, and shows the folder, which must be one of those that the model leaves at that cut. The
kernel's writes differ from run to run.

Needs root, FUSE and loop devices, and from Debian: mount, e2fsprogs, xfsprogs, btrfs-progs. Exit
status 1: a folder that the model lacks, which is printed with its program, or that nothing was
reached.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import file_programs
from file_programs import Program
from recording_disk import (
    MS_NOATIME,
    MS_RDONLY,
    Disk,
    Flush,
    ImageDisk,
    Mark,
    Record,
    Write,
    forget_btrfs,
    mount,
    own_mounts,
    unmount,
)
from sardonyx import _core

#: Where images lie, if there is such a folder.
MEMORY: Final = Path("/dev/shm")
#: The smallest disks, with the kernel's defaults otherwise.
MEGABYTE: Final = 1 << 20
#: mkfs.xfs makes file systems below 300 MB only where it believes that it is being tested.
SMALL: Final = {"TEST_DIR": "1", "TEST_DEV": "1", "QA_CHECK_FS": "1"}
#: The share of writes that the disk ends later than it could.
HELD: Final = 0.15
#: Writes that are torn at one epoch, and subsets of its writes that are drawn if they are many.
TORN, DRAWN, ALL_SUBSETS = 3, 8, 4
SECTOR: Final = 512
#: Folders of the model are counted at one cut up to so many.
COUNTED: Final = 5000


@dataclass(frozen=True)
class Made:
    """How a file system is made and mounted."""

    kind: str
    size: int
    mkfs: tuple[str, ...]
    options: str = ""


EXT4 = ("mkfs.ext4", "-q", "-b", "4096")
PLATFORMS: Final = {
    "ext4-ordered": Made("ext4", 16 * MEGABYTE, EXT4, "data=ordered"),
    "ext4-writeback": Made("ext4", 16 * MEGABYTE, EXT4, "data=writeback"),
    "xfs": Made("xfs", 32 * MEGABYTE, ("mkfs.xfs", "-q")),
    "btrfs": Made("btrfs", 112 * MEGABYTE, ("mkfs.btrfs", "-q", "-m", "single")),
}

#: How many calls had ended, and whether the next had begun.
Step = tuple[int, bool]


@dataclass(frozen=True)
class Image:
    """What a cut may leave: all writes of the first records, and some later ones; and when."""

    durable: int
    extra: tuple[Write, ...]
    steps: frozenset[Step]


def steps_of(records: Sequence[Record]) -> list[Step]:
    """Where the program is after each number of records."""
    step = (0, False)
    found = [step]
    for record in records:
        if isinstance(record, Mark):
            step = (step[0], True) if record.text == "begin" else (step[0] + 1, False)
        found.append(step)
    return found


def images(records: Sequence[Record], choice: random.Random) -> Iterator[Image]:
    """The images of a record: between two flushes, subsets of the writes between them."""
    steps = steps_of(records)
    begin, carried = 0, frozenset[Step]()
    flushes = [at for at, record in enumerate(records) if isinstance(record, Flush)]
    for end in [*flushes, len(records)]:
        pending = [at for at in range(begin, end) if isinstance(records[at], Write)]
        for chosen, torn in subsets(pending, records, choice):
            latest = max(chosen, default=begin - 1) + 1
            seen = frozenset(steps[latest : end + 1])
            if torn is None and not chosen:
                seen |= carried
            if torn is None and len(chosen) == len(pending) and end < len(records):
                carried = seen if pending else seen | carried
                continue  # the next flush makes just that durable
            writes = [records[at] for at in sorted(chosen)]
            extra = tuple(one for one in writes if isinstance(one, Write))
            if torn is not None:
                extra = (*extra[:-1], *torn_writes(extra[-1], torn))
            yield Image(begin, extra, seen)
        begin = end + 1


def subsets(
    pending: Sequence[int], records: Sequence[Record], choice: random.Random
) -> Iterator[tuple[frozenset[int], random.Random | None]]:
    """Sets of writes, none and all first; and some of which the last is torn."""
    found = {frozenset[int](): None, frozenset(pending): None}
    if len(pending) <= ALL_SUBSETS:
        for bits in range(1 << len(pending)):
            found[frozenset(at for place, at in enumerate(pending) if bits >> place & 1)] = None
    else:
        for place, at in enumerate(pending):
            found[frozenset(pending[:place])] = None
            found[frozenset(pending) - {at}] = None
            found[frozenset([at])] = None
        for _ in range(DRAWN):
            found[frozenset(at for at in pending if choice.random() < 0.5)] = None
    for chosen in found:
        yield chosen, None
    large = [at for at in pending if len(getattr(records[at], "data", b"")) > SECTOR]
    for at in choice.sample(large, min(TORN, len(large))):
        yield frozenset(one for one in pending if one <= at), choice


def torn_writes(write: Write, choice: random.Random) -> Iterator[Write]:
    """Some sectors of a write: its beginning, or any."""
    count = len(write.data) // SECTOR
    some = choice.sample(range(count), choice.randint(1, count - 1))
    for at in range(len(some)) if choice.random() < 0.5 else sorted(some):
        yield Write(write.offset + at * SECTOR, write.data[at * SECTOR : (at + 1) * SECTOR])


def content(records: Sequence[Record], image: Image) -> Iterator[Write]:
    """All writes of an image, in their order."""
    for record in records[: image.durable]:
        if isinstance(record, Write):
            yield record
    yield from image.extra


@dataclass
class Counts:
    """What was tried, and what it showed."""

    programs: int = 0
    calls: int = 0
    images: int = 0
    #: Pairs of a folder and a place in the program; how many of them the model lacks or cannot say.
    reached: int = 0
    lacking: int = 0
    unsaid: int = 0
    #: Images that the kernel does not mount or read.
    unread: int = 0
    #: Programs that the recorder does not follow.
    doubted: int = 0
    #: The model's folders after a call, those of them reached, and calls with too many.
    ours: int = 0
    ours_reached: int = 0
    uncounted: int = 0
    found: list[dict[str, Any]] = field(default_factory=list)

    def told(self) -> str:
        """Lines for people."""
        return (
            f"{self.programs:,} programs, {self.calls:,} calls, {self.images:,} images: "
            f"{self.reached:,} states, of which the model lacks {self.lacking:,} and cannot say "
            f"{self.unsaid:,}; {self.unread:,} images were not read, {self.doubted:,} programs not "
            f"followed\nof {self.ours:,} states of the model after a call {self.ours_reached:,} "
            f"were reached ({self.uncounted:,} calls leave more than {COUNTED:,})"
        )


class Recorded:
    """A program as it was recorded, for what can be said of folders that cuts left."""

    def __init__(self, run: _core.RecordedFiles, platform: str) -> None:
        self.run = run
        self.platform = platform
        self.cuts = [0, *run.acknowledged]
        self._leaves: dict[tuple[int, int], list[bool | None]] = {}

    def cuts_of(self, step: Step) -> range:
        """The cuts that a place in the program stands for."""
        ended, inside = step
        last = min(ended + inside, len(self.cuts) - 1)
        return range(self.cuts[ended], self.cuts[last] + 1)

    def leaves(self, folder: int, step: Step, known: int) -> bool | None:
        """Whether a folder of ``known`` that were read may be left there; None: cannot be said."""
        said: set[bool | None] = set()
        for cut in self.cuts_of(step):
            if (cut, known) not in self._leaves:
                self._leaves[cut, known] = self.run.leaves(self.platform, cut)
            said.add(self._leaves[cut, known][folder])
        return True if True in said else None if None in said else False


class Laboratory:
    """A disk with a new file system, the folder of programs on it, and what they left."""

    def __init__(self, platform: str, model: str, scratch: Path) -> None:
        self.model, self.made = model, PLATFORMS[platform]
        self.mounted = scratch / "mounted"
        self.mounted.mkdir()
        file = scratch / "image"
        with file.open("wb") as image:
            image.truncate(self.made.size)
        command = [*self.made.mkfs, str(file)]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | SMALL)
        self.disk = Disk(file.read_bytes(), scratch / "fuse")
        with self.mount(self.disk.device):
            file_programs.prepare(self.mounted / "d")
        self.disk.keep()
        self.image = ImageDisk(self.disk.content, file)

    def close(self) -> None:
        """Ends both disks."""
        self.disk.close()
        self.image.close()

    @contextlib.contextmanager
    def mount(self, device: str, flags: int = 0) -> Iterator[None]:
        """The file system of a device, mounted."""
        made = self.made
        try:
            mount(device, self.mounted, made.kind, flags | MS_NOATIME, made.options)
            try:
                yield
            finally:
                unmount(self.mounted)
        finally:
            if made.kind == "btrfs":
                forget_btrfs()

    def record(
        self, program: Program, choice: random.Random
    ) -> tuple[list[Record], _core.RecordedFiles]:
        """Runs a program. What the file system writes as it is unmounted is recorded too."""
        self.disk.revert()
        records = self.disk.records = []
        asked = json.dumps({"calls": program, "keep": choice.random() < 0.5})
        folder = str(self.mounted / "d")
        words = [sys.executable, "-I", "-S", file_programs.__file__, folder]
        words += [str(self.disk.marks), asked]
        self.disk.holds = lambda: choice.random() < HELD
        with self.mount(self.disk.device):
            run = _core.RecordedFiles(json.dumps({"program": words, "files": folder}))
        self.disk.records = None
        return records, run

    def left(self, records: Sequence[Record], image: Image, run: _core.RecordedFiles) -> int:
        """The number of the folder that the kernel finds on an image."""
        self.image.become(content(records, image))
        with self.mount(self.image.device, MS_RDONLY):
            return run.read(str(self.mounted / "d"))

    def shown(self, records: Sequence[Record], image: Image) -> list[str]:
        """What the kernel finds on an image, a line a path."""
        self.image.become(content(records, image))
        with self.mount(self.image.device, MS_RDONLY):
            return list(listed(self.mounted / "d"))


def listed(folder: Path) -> Iterator[str]:
    """A line a path below a folder: size and the beginnings of its sectors."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_symlink():
            yield f"{name} -> {os.readlink(path)}"
        elif path.is_dir():
            yield f"{name}/"
        else:
            data = path.read_bytes()
            runs: list[tuple[int, str]] = []
            for at in range(0, len(data), SECTOR):
                letters = {chr(letter) if letter else "0" for letter in data[at : at + SECTOR : 4]}
                text = "".join(sorted(letters))
                if not runs or runs[-1][1] != text:
                    runs.append((at, text))
            told = " ".join(f"{at}:{text}" for at, text in runs)
            yield f"{name} inode {path.stat().st_ino} size {len(data)} {told}"


def tried(
    lab: Laboratory, program: Program, choice: random.Random, most: int, counts: Counts
) -> None:
    """One program: its images, what they left, and whether the model has it."""
    records, run = lab.record(program, choice)
    if run.doubts or len(run.acknowledged) != len(program):
        counts.doubted += 1
        return
    recorded = Recorded(run, lab.model)
    reached: dict[int, dict[Step, Image]] = defaultdict(dict)
    for image in sampled(list(images(records, choice)), most, choice):
        counts.images += 1
        try:
            number = lab.left(records, image, run)
        except (OSError, _core.SardonyxError) as error:
            counts.unread += 1
            counts.found.append({"program": program, "unread": str(error)})
            continue
        for step in image.steps:
            reached[number].setdefault(step, image)
    counts.programs += 1
    counts.calls += len(program)
    judge(lab, program, records, recorded, reached, counts)


def judge(
    lab: Laboratory, program: Program, records: Sequence[Record], recorded: Recorded,
    reached: dict[int, dict[Step, Image]], counts: Counts,
) -> None:  # fmt: skip
    """Holds what was reached against the model, and counts what the model has beyond it."""
    for number, places in reached.items():
        for step, image in sorted(places.items(), key=lambda place: place[0]):
            counts.reached += 1
            ours = recorded.leaves(number, step, len(reached))
            counts.unsaid += ours is None
            if ours is False:
                counts.lacking += 1
                left = lab.shown(records, image)
                one = {"program": program, "step": step, "left": left}
                one["operations"] = recorded.run.operations
                counts.found.append(one)
    for ended in range(len(program) + 1):
        there = [number for number, places in reached.items() if (ended, False) in places]
        cut = recorded.cuts[ended]
        counted = recorded.run.count(lab.model, cut, there, COUNTED)
        if counted is None:
            counts.uncounted += 1
        else:
            counts.ours += counted[0]
            counts.ours_reached += counted[1]


def sampled(found: list[Image], most: int, choice: random.Random) -> Iterable[Image]:
    """At most so many images, those without anything that is not durable among them."""
    whole = [image for image in found if not image.extra]
    rest = [image for image in found if image.extra]
    return whole[-most:] + choice.sample(rest, min(len(rest), max(0, most - len(whole))))


def refuse(why: str) -> NoReturn:
    """Ends with one line and status 2."""
    print(f"oracle: {why}", file=sys.stderr)
    sys.exit(2)


def program_of(text: str) -> Program:
    """A program that was given as JSON."""
    program: Program = json.loads(text)
    for name, *given in program:
        if name not in file_programs.CALLS or len(given) != len(file_programs.CALLS[name][1]):
            raise argparse.ArgumentTypeError(f"{name}: no such call, or not its arguments")
    return program


def check_machine(platform: str) -> None:
    """An error unless this machine can do it."""
    made = PLATFORMS[platform]
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    os.environ["PATH"] = path
    tools = [tool for tool in (made.mkfs[0], "losetup") if shutil.which(tool) is None]
    if os.geteuid():
        refuse("needs root, to mount file systems; run it as root")
    if tools:
        refuse(f"no {', '.join(tools)}; apt-get install e2fsprogs xfsprogs btrfs-progs mount")
    known = Path("/proc/filesystems").read_text().split()
    if not Path("/dev/fuse").exists() or made.kind not in known:
        refuse(f"the kernel has no FUSE or no {made.kind}; choose another --platform")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--platform", choices=PLATFORMS, default="ext4-ordered")
    models = [*PLATFORMS, "strict"]
    parser.add_argument(
        "--model", choices=models, help="hold what is left against this platform's rules instead"
    )
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--calls", type=int, default=8, help="of a program, from 3 to so many (8)")
    parser.add_argument("--images", type=int, default=40, help="of a program, at most (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=program_of, help='one program: [["append", "a", 10]]')
    parser.add_argument("--json", type=Path, help="write counts and what was found")
    asked = parser.parse_args()
    if min(asked.programs, asked.images, asked.calls - 2) < 1:
        refuse("would try nothing; give --programs 1, --images 1 and --calls 3, or more")
    if asked.json and not asked.json.parent.is_dir():
        refuse(f"--json: no folder {asked.json.parent}; make it first")
    check_machine(asked.platform)
    # Mounts and loop devices go, whoever ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    counts = run(asked)
    for one in counts.found[:20]:
        print(json.dumps(one))
    print(asked.platform, "of", os.uname().release)
    print(counts.told())
    if asked.json:
        asked.json.write_text(json.dumps(vars(counts)))
    sys.exit(1 if counts.lacking or not counts.reached else 0)


def run(asked: argparse.Namespace) -> Counts:
    """All programs that were asked for."""
    counts = Counts()
    own_mounts()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None) as scratch:
        lab = Laboratory(asked.platform, asked.model or asked.platform, Path(scratch))
        try:
            for number in range(asked.programs):
                choice = random.Random(f"{asked.seed} {number}")
                program = asked.program or file_programs.drawn(choice, asked.calls)
                tried(lab, program, choice, asked.images, counts)
        finally:
            lab.close()
    return counts


if __name__ == "__main__":
    main()
