"""What real file systems leave, held against the model: ``tools/oracle.py``."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import oracle
import pytest
from oracle import Image, Recorded, images
from recording_disk import Flush, Mark, Record, Write

BEGIN, END = Mark("begin"), Mark("end")


def writes(*numbers: int) -> list[Record]:
    """A write of a sector each."""
    return [Write(number * 512, bytes([number]) * 512) for number in numbers]


def found(records: list[Record]) -> list[tuple[set[int], set[tuple[int, bool]]]]:
    """The sectors that each image has, and when it may be left."""
    made = list(images(records, random.Random(1)))
    whole = [set(one.offset // 512 for one in oracle.content(records, image)) for image in made]
    return [(sectors, set(image.steps)) for sectors, image in zip(whole, made, strict=True)]


def test_all_subsets_of_writes_after_a_flush_and_all_before_it() -> None:
    records = [BEGIN, *writes(1), Flush(), END, BEGIN, *writes(2, 3), END]
    inside, ended, last = (0, True), (1, False), (1, True)
    left = found(records)
    # Nothing until the flush; the first sector from its write on, for certain once it is flushed.
    assert left[0] == (set(), {(0, False), inside})
    assert left[1] == ({1}, {inside, ended, last, (2, False)})
    assert ({1, 3}, {last, (2, False)}) in left
    assert len(left) == 5 and all(1 in sectors for sectors, _ in left[1:])


def test_a_torn_write_has_some_of_its_sectors() -> None:
    large = Write(0, bytes(8 * 512))
    made = [image for seed in range(20) for image in images([large], random.Random(seed))]
    torn = [image.extra for image in made if image.extra and image.extra != (large,)]
    assert all(len(one.data) == 512 for extra in torn for one in extra)
    assert {len(extra) for extra in torn} == set(range(1, 8))


def test_many_writes_are_drawn_and_each_is_missing_and_alone() -> None:
    left = [sectors for sectors, _ in found(writes(*range(1, 11)))]
    everything = set(range(1, 11))
    assert everything in left and set() in left
    assert all(everything - {one} in left and {one} in left for one in everything)
    assert len(left) < 50


class Run:
    """A recorded program of two calls, of which the model leaves one folder at each cut."""

    acknowledged = (2, 5)
    doubts: tuple[str, ...] = ()

    def leaves(self, _: str, cut: int) -> list[bool | None]:
        """Folder 0 before the first call, 1 in the second."""
        return [cut <= 1, cut in (3, 4), None]


def test_a_place_in_a_call_stands_for_all_cuts_of_it_and_one_between_calls_for_itself() -> None:
    recorded = Recorded(Run(), "xfs")  # type: ignore[arg-type]
    ends = [list(recorded.cuts_of(step)) for step in ((0, False), (0, True), (1, True), (2, False))]
    assert ends == [[0], [0, 1, 2], [2, 3, 4, 5], [5]]
    assert recorded.leaves(0, (0, True), 3) is True
    assert recorded.leaves(0, (1, False), 3) is False
    assert recorded.leaves(1, (1, True), 3) is True
    assert recorded.leaves(1, (2, False), 3) is False
    assert recorded.leaves(2, (2, False), 3) is None


def test_images_without_pending_writes_are_kept() -> None:
    made = [Image(at, (), frozenset()) for at in range(3)]
    made += [Image(at, (Write(0, b""),), frozenset()) for at in range(9)]
    some = list(oracle.sampled(made, 5, random.Random(1)))
    assert some[:3] == made[:3] and len(some) == 5


needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="mounting needs root and FUSE"
)


def oracle_of(*words: str) -> subprocess.CompletedProcess[str]:
    """The tool, which takes its mounts with it when it ends."""
    command = [sys.executable, oracle.__file__, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--programs 0", "would try nothing"),
        ("--calls 2", "would try nothing"),
        ("--model fat", "invalid choice: 'fat'"),
        ("--json none/a.json", "no folder none"),
        ('--program [["jump"]]', "jump: no such call"),
        ('--program [["append","a"]]', "append: no such call, or not its arguments"),
        ("--program 3", "invalid program_of value"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_any_work(words: str, why: str) -> None:
    done = oracle_of(*words.split())
    assert done.returncode == 2 and why in done.stderr and "Traceback" not in done.stderr


@needs_root
@pytest.mark.machine
@pytest.mark.parametrize("platform", oracle.PLATFORMS)
def test_five_programs_leave_nothing_that_the_model_lacks(platform: str) -> None:
    done = oracle_of("--platform", platform, "--programs", "5", "--images", "12")
    assert done.returncode == 0 and "the model lacks 0" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count(" 0 programs not followed") == 1


@needs_root
@pytest.mark.machine
def test_a_model_that_is_too_strict_is_found() -> None:
    program = '[["pwrite", "c", 0, 9000], ["write back", "c"]]'
    words = ("--programs", "1", "--program", program, "--images", "60")
    assert oracle_of(*words).returncode == 0
    done = oracle_of(*words, "--model", "btrfs")  # which never tears a page
    assert done.returncode == 1 and '"left": ["a inode' in done.stdout, done.stdout + done.stderr
