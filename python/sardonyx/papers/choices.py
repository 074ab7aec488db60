"""What several papers leave open about their programs, as the sample of a reproduction draws it.

All ranges are *assumed*. Left out: how a sample is drawn and run (``papers.sampling``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.papers.claims import ClaimRow
from sardonyx.papers.reproduction import Asked
from sardonyx.papers.sampling import Sampled
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Setting, Settings, Simulations
from sardonyx.vary.ranges import Range

#: Instructions between two transactions.
THINK = Range(
    "think.instructions",
    "0",
    "no paper says what a program does beside its transactions",
    "0",
    "25600",
    whole=True,
)
#: Loads that miss all caches between two transactions, each waiting for the one before.
THINK_LOADS = Range(
    "think.loads",
    "0",
    "no paper says what a program does beside its transactions",
    "0",
    "64",
    whole=True,
)


def check_programs(paper: str, asked: Asked) -> None:
    """An error if traces or cores are asked of a paper that runs programs on cores of its own."""
    if asked.traces:
        raise SardonyxError(f"{asked.traces[0]}: {paper} runs programs of its own; name no trace")
    if asked.limit is not None:
        raise SardonyxError(
            f"--limit {asked.limit}: ends traces, and {paper} runs programs; leave it out"
        )
    if asked.copies is not None:
        raise SardonyxError(
            f"--copies: {paper} runs on the numbers of cores of its figures; leave it out"
        )


def warmed(asked: Asked, warmup: int, transactions: int) -> int:
    """Transactions that warm up: so many of a paper's, unless the user says otherwise."""
    if asked.warmup is None:
        return warmup
    count, share = _core.warmup(asked.warmup)
    return count + int(share * transactions)


@dataclass(frozen=True, slots=True)
class DrawnSizes:
    """Programs as a cell has them. ``footprint`` and ``transaction_size`` are bytes."""

    footprint: int
    transaction_size: int
    seed: int

    @property
    def scale(self) -> dict[str, Any]:
        """What a paper's scale calls them."""
        return {
            "footprint": self.footprint,
            "transaction_size": self.transaction_size,
            "seed": self.seed,
        }


def program_sample(
    asked: Asked,
    programs: Sequence[str],
    footprint: int,
    item_sizes: tuple[int, int, int],
    transactions: int,
    plain: Callable[[DrawnSizes], Sequence[Point]],
    claims: Callable[[Comparison], Sequence[ClaimRow]],
    note: str,
) -> Sampled:
    """The ``plain`` runs of the programs, over sizes, seed, warm-up and think time.

    ``item_sizes`` are the least, the usual and the greatest bytes of an item, and each core makes
    so many ``transactions``. What the user gave for the warm-up is not drawn.
    """
    smallest, usual, largest = map(str, item_sizes)
    choices = [
        Range(
            "footprint",
            str(footprint),
            "bytes of a program's structure: four times less, to four times more",
            str(footprint // 4),
            str(footprint * 4),
            whole=True,
        ),
        Range("item size", usual, "bytes that a transaction writes", smallest, largest, whole=True),
        Range("seed", str(asked.seed), "of what is drawn in programs", "0", "999", whole=True),
        THINK,
        THINK_LOADS,
    ]
    if asked.warmup is None:
        choices.append(Range("warmup", "0.33", "the share of transactions", "0.1", "0.6"))

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> Simulations:
        sizes = DrawnSizes(int(values["footprint"]), int(values["item size"]), int(values["seed"]))
        count, share = _core.warmup(asked.warmup or f"{100 * float(values['warmup']):.0f}%")
        warmup = count + int(share * transactions)
        return Simulations(Settings(asked.machine, keys, warmup), plain(sizes))

    return Sampled(
        tuple(programs), tuple(choices), runs, claims, asked.machine, asked.overrides, note
    )
