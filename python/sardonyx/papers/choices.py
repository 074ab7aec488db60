"""Choices of a workload that several papers leave open, as ranges that a sample draws from."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.sweeps.varying import Range

#: Instructions between two transactions.
THINK = Range(
    "think.instructions",
    "0",
    "no paper says what a program does beside its transactions",
    "0",
    "25600",
    whole=True,
)


def program_choices(programs: Sequence[str], footprint: int, seed: int) -> tuple[Range, ...]:
    """Which of the programs runs, the bytes of its structure, and its seed."""
    return (
        Range("workload", programs[0], "which program", others=tuple(programs[1:])),
        Range(
            "footprint",
            str(footprint),
            "bytes of a program's structure: four times less, to four times more",
            str(footprint // 4),
            str(footprint * 4),
            whole=True,
        ),
        Range("seed", str(seed), "of what is drawn in programs", "0", "999", whole=True),
    )
