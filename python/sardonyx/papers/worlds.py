"""Worlds of a reproduction's sample: readings of a paper that nobody would average, such as cores
with equal contents and with contents of their own. Each is a sample of its own, so that every row
says in which world it holds.

Left out: how one world is drawn and run (``papers.sampling``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sardonyx.papers.sample import Sample
from sardonyx.runs.jobs import Setting, is_key
from sardonyx.runs.sensitivity import Sensitivity

if TYPE_CHECKING:
    from sardonyx.papers.sampling import Sampled
    from sardonyx.vary.runs import CellRuns


@dataclass(frozen=True, slots=True)
class World:
    """Choices with ``fixed`` values, workloads' and keys alike, and ``why`` they stand apart."""

    name: str
    fixed: Mapping[str, str]
    why: str


def open_worlds(worlds: Sequence[World], settled: Sequence[str]) -> tuple[World, ...]:
    """The worlds that are left once the user has settled some of the choices: each a world by its
    other choices, those alike once; none if one is left.
    """
    found: dict[tuple[tuple[str, str], ...], World] = {}
    for world in worlds:
        fixed = {name: value for name, value in world.fixed.items() if name not in settled}
        found.setdefault(tuple(sorted(fixed.items())), replace(world, fixed=fixed))
    return tuple(found.values()) if len(found) > 1 else ()


def within(of: Sampled, world: World) -> Sampled:
    """What is drawn in one world: its choices are fixed."""

    def runs(values: Mapping[str, str], keys: Sequence[Setting]) -> CellRuns:
        return of.runs({**values, **world.fixed}, keys)

    return replace(
        of,
        choices=tuple(each for each in of.choices if each.parameter not in world.fixed),
        runs=runs,
        overrides=[*of.overrides, *((k, v) for k, v in world.fixed.items() if is_key(k))],
        worlds=(),
    )


def joined(samples: Mapping[str, Sample]) -> Sample:
    """One sample of those of the worlds, by their names: each claim is a row in each world."""
    first = next(iter(samples.values()))
    return replace(
        first,
        cells=sum(each.cells for each in samples.values()),
        runs=sum(each.runs for each in samples.values()),
        claims=tuple(
            replace(claim, world=name, title=f"{claim.title}; {name}")
            for claims in zip(*(each.claims for each in samples.values()), strict=True)
            for name, claim in zip(samples, claims, strict=True)
        ),
        note=f"{first.note} Worlds, with as many cells each: {', '.join(samples)}.".strip(),
        redrawn=sum(each.redrawn for each in samples.values()),
        failures=tuple(
            f"{name}: {text}" for name, each in samples.items() for text in each.failures
        ),
        lacking=sum(each.lacking for each in samples.values()),
    )


def joined_sensitivity(found: Mapping[str, Sensitivity | None]) -> Sensitivity | None:
    """One of those of the worlds: each claim turns in a world; none if none was asked for."""
    known = {name: each for name, each in found.items() if each is not None}
    first = next(iter(known.values()), None)
    if first is None:
        return None
    return replace(
        first,
        cells=sum(each.cells for each in known.values()),
        runs=sum(each.runs for each in known.values()),
        concluded=tuple(
            replace(one, title=f"{one.title}; {name}")
            for name, each in known.items()
            for one in each.concluded
        ),
        conclusions=sum(each.conclusions for each in known.values()),
        redrawn=sum(each.redrawn for each in known.values()),
        failures=tuple(f"{name}: {text}" for name, each in known.items() for text in each.failures),
    )
