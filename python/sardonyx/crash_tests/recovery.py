"""Cuts inside the recovery: it is recorded on images that it repairs, and cut at its own fences.

What such a cut leaves is a pool in the middle of a repair, and the recovery must cope with that as
well: {acks} is what had been printed when the program itself was cut. Left out: what the first
run's own cuts show.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sardonyx import _core
from sardonyx.api.asked import whole
from sardonyx.crash_tests.show import SHOWN, show_cause
from sardonyx.crash_tests.tested import tested
from sardonyx.questions import CrashTestQuestion
from sardonyx.runs.crash_test import given
from sardonyx.runs.scheduler import Watch
from sardonyx.tracing.record import recorded

#: The recovery is recorded on this many images at each depth.
IMAGES = 8
POOLS = "pools"
#: Runs a command without its output, in the same process.
QUIET = ("/bin/sh", "-c", 'exec "$0" "$@" > /dev/null 2>&1')


def spread(images: Sequence[str]) -> list[str]:
    """Some of the images, the first and the last among them."""
    if len(images) <= IMAGES:
        return list(images)
    return [images[i * (len(images) - 1) // (IMAGES - 1)] for i in range(IMAGES)]


def inside(
    question: CrashTestQuestion,
    found: dict[str, Any],
    depth: int,
    keep: Path | None,
    watch: Watch | None,
) -> list[dict[str, Any]]:
    """What was found of each recovery that was cut, to ``depth`` recoveries within each other.

    Each has ``image`` and ``depth`` beside what a crash test has; its recording and pools are
    left in ``keep``, if there is one. The budget is each depth's, in equal parts.
    """
    images = spread(found["repaired"])
    told: list[dict[str, Any]] = []
    for number, image in enumerate(images, 1):
        with tempfile.TemporaryDirectory(prefix="sardonyx-inside-") as made:
            folder = Path(made)
            if keep is not None:
                folder = keep / f"inside-{number}"
                folder.mkdir(parents=True)
            one = _one(question, found, image, folder, question.budget / len(images), watch)
            if one is None:
                continue
            one |= {"image": image, "depth": 1}
            told.append(one)
            if depth > 1 and not one["violations"]:
                within = question.replace(
                    **_pools(one["pools"]),
                    recover=tuple(w.replace("{acks}", one["acks"]) for w in question.recover),
                    recording=one["recording"],
                    start="0",
                    assume_persisted=(),
                )
                place = folder if keep is not None else None
                below = inside(within, one, depth - 1, place, watch)
                told += [each | {"depth": each["depth"] + 1} for each in below]
    return told


def _one(
    question: CrashTestQuestion,
    found: dict[str, Any],
    image: str,
    folder: Path,
    budget: float,
    watch: Watch | None,
) -> dict[str, Any] | None:
    """The recovery of one image, recorded in ``folder`` and cut; ``None`` if it changes nothing."""
    assumed = tuple(found.get("assumed") or ())
    tested(question.replace(replay=image, keep=str(folder), assume_persisted=assumed), watch)
    pools = _moved(folder, found)
    acks = str(folder / "replayed.acks")
    words = [given(word, pools, folder / POOLS, acks) for word in question.recover]
    trace = folder / "recovery.parquet"
    asked = {"program": [*QUIET, *words], "output": str(trace), "pc": True, "read_data": False}
    recorded(whole("trace record", json.dumps(asked)), watch)
    within = question.replace(
        **_pools([{"path": path} for path in pools]),
        recover=tuple(word.replace("{acks}", acks) for word in question.recover),
        recording=str(trace),
        start="0",
        keep=None,
        assume_persisted=(),
        allow_failure=True,  # a status that is no violation ends it
        budget=budget,
    )
    try:
        return tested(within, watch) | {"recording": str(trace), "acks": acks}
    except _core.SardonyxError as error:
        # It repaired the pool by stores that nothing makes sure, or through a descriptor.
        if any(part in str(error) for part in ("stored nothing", "never flushes", "never syncs")):
            return None
        raise


def _pools(pools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a question for these pools."""
    first, *more = [str(pool["path"]) for pool in pools]
    return {"pool": first, "more_pools": tuple(more)}


def _moved(folder: Path, found: dict[str, Any]) -> list[str]:
    """The paths of the replayed image's files, under the pools' own names."""
    replayed, moved = folder / "replayed.pool", folder / POOLS
    if len(found["pools"]) == 1:
        moved.mkdir()
        shutil.move(replayed, moved / found["pools"][0]["name"])
    else:
        shutil.move(replayed, moved)
    return [str(moved / pool["name"]) for pool in found["pools"]]


def replays(one: dict[str, Any], recover: str) -> None:
    """Give each cause of a recovery that was cut the command that shows it."""
    for cause in one["causes"]:
        command = ["sardonyx", "crash-test", "replay", one["recording"], cause["image"]]
        command += [part for pool in one["pools"] for part in ("--pool", pool["path"])]
        command += ["--platform", one["platform"]]
        assumed = [part for place in cause["assumed"] for part in ("--assume-persisted", place)]
        cause["replay"] = shlex.join([*command, "--recover", recover, *assumed])


def show(people: Console, recoveries: Sequence[dict[str, Any]]) -> None:
    """How much was tried inside the recovery, and what failed."""
    images, cuts = (sum(one[key] for one in recoveries) for key in ("images", "cuts_tried"))
    people.print(
        f"\ninside the recovery: {len(recoveries)} recoveries recorded, {images:,} images at "
        f"{cuts:,} cuts of theirs",
        soft_wrap=True,
    )
    if not recoveries:
        people.print(
            "the recovery changed no image that it was seen on, so there is nothing to cut"
        )
    failed = [one for one in recoveries if one["violations"]]
    if recoveries and not failed:
        people.print(Text("no violation inside the recovery", style="green"))
    for one in failed[:SHOWN]:
        people.print(f"of the image {one['image']}, {one['depth']} deep:", soft_wrap=True)
        for number, cause in enumerate(one["causes"][:1], 1):
            show_cause(people, number, cause)
