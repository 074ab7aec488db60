"""Cuts inside the recovery: it is recorded on images that it repairs, and cut at its own fences.

What such a cut leaves is a pool in the middle of a repair, and the recovery must cope with that as
well. Left out: what the first run's own cuts show, and what had been acknowledged by then.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.cli.common import err
from sardonyx.cli.record import PLUGIN, Record, emulator, run_recorded
from sardonyx.questions import CrashTestQuestion, RecordRequest
from sardonyx.runs.recoveries import PLACES, crash_real

#: Images on which the recovery is recorded, at each depth.
IMAGES = 8
#: The folder of a recovery's pools.
POOLS = "pools"
#: Runs a command without its output, as the same process.
QUIET = ("/bin/sh", "-c", 'exec "$0" "$@" > /dev/null 2>&1')


def check_depth(recover: Sequence[str], depth: int) -> None:
    """An error if what the recovery asks for is not known inside of it."""
    if depth and any("{acks}" in word for word in recover):
        raise _core.SardonyxError(
            "--recovery-depth: a recovery that is cut is not held to what had been printed; "
            "leave {acks} out of --recover, or test it without --recovery-depth"
        )


def spread(images: Sequence[str]) -> list[str]:
    """Some of the images, the first and the last among them."""
    if len(images) <= IMAGES:
        return list(images)
    return [images[i * (len(images) - 1) // (IMAGES - 1)] for i in range(IMAGES)]


def inside(
    question: CrashTestQuestion, found: dict[str, Any], depth: int, keep: Path | None
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
            one = _one(question, found, image, folder, question.budget / len(images))
            if one is None:
                continue
            one |= {"image": image, "depth": 1}
            told.append(one)
            if depth > 1 and not one["violations"]:
                within = question.model_copy(
                    update=_pools(one["pools"])
                    | {"recording": one["recording"], "start": "0", "assume_persisted": ()}
                )
                below = inside(within, one, depth - 1, folder if keep is not None else None)
                told += [each | {"depth": each["depth"] + 1} for each in below]
    return told


def _one(
    question: CrashTestQuestion,
    found: dict[str, Any],
    image: str,
    folder: Path,
    budget: float,
) -> dict[str, Any] | None:
    """The recovery of one image, recorded in ``folder`` and cut; nothing if it changes nothing."""
    assumed = tuple(found.get("assumed") or ())
    crash_real(
        question.model_copy(
            update={"replay": image, "keep": str(folder), "assume_persisted": assumed}
        )
    )
    pools = _moved(folder, found)
    words = [given(word, pools, folder / POOLS) for word in question.recover]
    trace = folder / "recovery.parquet"
    wanted = RecordRequest(
        clearing=Record.clearing, cores=Record.cores, follow_fork=True,
        kernel_instructions=Record.kernel_instructions, l1=Record.l1, l2=Record.l2, level="cpu",
        llc=Record.llc, memory=Record.memory, non_inclusive=False, output=str(trace), pc=True,
        plugin=str(PLUGIN), program=(*QUIET, *words), qemu=emulator(), read_data=False,
        reuse=Record.reuse, skip=0, skip_instructions=0, pages="virtual",
    )  # fmt: skip
    run_recorded(wanted, err)
    within = question.model_copy(
        update=_pools([{"path": path} for path in pools])
        | {"recording": str(trace), "start": "0", "keep": None}
        | {"assume_persisted": (), "budget": budget}
    )
    try:
        return crash_real(within) | {"recording": str(trace)}
    except _core.SardonyxError as error:
        # It repaired the pool by stores that nobody makes sure of, or through a descriptor.
        if any(part in str(error) for part in ("stored nothing", "never flushes", "never syncs")):
            return None
        raise


def _pools(pools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a question says of these pools."""
    first, *more = [str(pool["path"]) for pool in pools]
    return {"pool": first, "more_pools": tuple(more)}


def _moved(folder: Path, found: dict[str, Any]) -> list[str]:
    """Where the replayed image's files are now, under the pools' own names."""
    replayed, moved = folder / "replayed.pool", folder / POOLS
    if len(found["pools"]) == 1:
        moved.mkdir()
        shutil.move(replayed, moved / found["pools"][0]["name"])
    else:
        shutil.move(replayed, moved)
    return [str(moved / pool["name"]) for pool in found["pools"]]


def given(word: str, pools: Sequence[str], folder: Path, acks: str = "{acks}") -> str:
    """A word of the recovery's command, with what it is given for the names in braces."""
    names = {f"pool{number}": path for number, path in enumerate(pools, 1)}
    names |= {"pool": pools[0], "pools": str(folder), "acks": acks}
    return PLACES.sub(lambda found: names.get(found[1], found[0]), word)


def replays(one: dict[str, Any], recover: str) -> None:
    """Give each cause of a recovery that was cut the command that shows it."""
    for cause in one["causes"]:
        command = ["sardonyx", "crash-test", one["recording"]]
        command += [part for pool in one["pools"] for part in ("--pool", pool["path"])]
        command += ["--platform", one["platform"]]
        assumed = [part for place in cause["assumed"] for part in ("--assume-persisted", place)]
        cause["replay"] = shlex.join(
            [*command, "--recover", recover, *assumed, "--replay", cause["image"]]
        )
