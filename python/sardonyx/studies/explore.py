"""What to build under a budget: designs, each with every way of sharing out the memory on chip, and
with parts of it.

Successive halving (Jamieson and Talwalkar, AISTATS 2016): all candidates on a short part of each
workload, the best quarter on four times as much, and so on, so that every round costs about the
same. The last round is over several windows or seeds, which give the intervals. Candidates that the
last round cannot tell from the best run again over more of them. Runs are points of sweeps in a
folder. Left out: how it is shown (``cli.explore``).
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.questions import ProgramSource, Source, SynthSource, TraceSource
from sardonyx.runs import scheduler
from sardonyx.runs.answers import Spread, of_figure
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.scheduler import Watch
from sardonyx.sizes import size_text
from sardonyx.sweeps.rows import Rows, options
from sardonyx.sweeps.table import Goal
from sardonyx.vary.runs import Simulated

#: The smallest cache or table that is tried, in bytes, and the number of parts of a budget.
LEAST, PARTS = 4096, 16
#: Candidates spend the budget, or one in so many parts of it.
SPENT = (1, 2, 4)
#: A round leaves one candidate in this many to the next, which has this many times the records.
KEEP = 4
#: The number of candidates of the last round, roughly.
LAST = 8
#: The number of windows or seeds of the last round, and of those before.
SAMPLES, FEW = 8, 2
#: The fewest records, or transactions, of a round's part.
SHORTEST = {"records": 2000, "transactions": 50}
#: And of near-ties, which run again.
AGAIN = 2 * SAMPLES
#: Two-sided 95 % of Student's t with one degree of freedom less than samples.
STUDENT = {SAMPLES: 2.3646, AGAIN: 2.1314}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A design, and the bytes of each of its caches and tables on chip, by key."""

    design: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """As in ``esd (esd.efit_bytes 512K, esd.amt_bytes 256K)``."""
        parts = [f"{key} {size_text(size)}" for key, size in self.sizes]
        return f"{self.design} ({', '.join(parts)})" if parts else self.design

    @property
    def bytes(self) -> int:
        """Its memory on chip."""
        return sum(size for _, size in self.sizes)


def caches(design: str) -> list[str]:
    """The keys with the bytes of the caches and tables on chip of a design."""
    return list(_core.caches(design))


def candidates(designs: Sequence[str], budget: int) -> list[Candidate]:
    """Every design with every way to share out ``budget`` bytes, in sixteenths, and a half and a
    quarter of them.
    """
    found: dict[Candidate, None] = {}
    for design in designs:
        keys = caches(design)
        least = len(keys) * LEAST
        if least > budget:
            raise _core.SardonyxError(
                f"--sram {size_text(budget)}: {design} has {len(keys)} caches and tables on chip, "
                f"of {size_text(LEAST)} each at least; give {size_text(least)} or more, or leave "
                "the design out"
            )
        for part in SPENT:
            shares = splits(len(keys), budget // part, PARTS // part) if keys else iter([()])
            for share in shares:
                found[Candidate(design, tuple(zip(keys, share, strict=True)))] = None
    return list(found)


def splits(count: int, budget: int, parts: int = PARTS) -> Iterator[tuple[int, ...]]:
    """Sizes of so many caches that use a budget up to less than ``LEAST``, each some of so many
    nearly equal parts of it; nothing if it is too small.
    """
    units = budget // LEAST
    if units < count:
        return
    parts = min(max(parts, count), units)
    for inner in combinations(range(1, parts), count - 1):
        ends = [units * part // parts for part in (0, *inner, parts)]
        yield tuple((end - begin) * LEAST for begin, end in pairwise(ends))


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate after its last round: each goal's figure, the geometric mean over workloads and
    samples, and half of its 95 % interval where there were samples.
    """

    candidate: Candidate
    round: int
    figures: Mapping[str, float]
    halves: Mapping[str, float]
    error: str | None = None
    #: Each figure by workload, and by sample: windows and seeds are the same for all.
    each: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def near(self, other: Tried, name: str) -> bool:
        """Whether the samples leave open which of two is better: the interval of their differences
        has 0 in it, and they are not all equal.
        """
        ours, theirs = (one.samples.get(name, ()) for one in (self, other))
        if len(ours) != len(theirs) or len(ours) not in STUDENT:
            return False
        apart = [a - b for a, b in zip(ours, theirs, strict=True)]
        half = STUDENT[len(apart)] * statistics.stdev(apart) / math.sqrt(len(apart))
        return any(apart) and abs(statistics.fmean(apart)) <= half


@dataclass(frozen=True, slots=True)
class Explored:
    """What was found. ``front`` are those of the last round to which no other is better in one goal
    and as good in the others, or as good in all with less memory.
    """

    tried: Sequence[Tried]
    front: Sequence[Tried]
    rounds: Sequence[tuple[int, str]]
    runs: int
    goals: Sequence[Goal]
    #: Those of the last round that keep their limits.
    final: Sequence[Tried] = ()

    def best(self, goal: Goal) -> Tried:
        """The best of the front in one goal."""
        return min(
            self.front, key=lambda one: (goal.cost(one.figures[goal.name]), one.candidate.bytes)
        )

    def half(self, goal: Goal) -> tuple[Tried, float] | None:
        """The best of the last round that takes at most half of the best's memory, and which share
        of the figure that costs; nothing if there is none.
        """
        best = self.best(goal)
        ours = best.figures[goal.name]
        small = [one for one in self.final if 2 * one.candidate.bytes <= best.candidate.bytes]
        if not small or ours <= 0:
            return None
        found = min(small, key=lambda one: (goal.cost(one.figures[goal.name]), one.candidate.bytes))
        lost = found.figures[goal.name] / ours - 1
        return found, -lost if goal.more else lost

    def beside_next(self, goal: Goal) -> tuple[Tried, Spread] | None:
        """The best of another design in the last round, and how the best stands beside it by
        workload; nothing if there was no other design, or a figure is 0.
        """
        best = self.best(goal)
        others = [
            one
            for one in self.tried
            if one.round == best.round
            and one.error is None
            and one.candidate.design != best.candidate.design
        ]
        if not others:
            return None
        second = min(others, key=lambda one: goal.cost(one.figures[goal.name]))
        ours, theirs = (one.each.get(goal.name, {}) for one in (best, second))
        if not ours or any(theirs.get(name, 0.0) <= 0 or ours[name] <= 0 for name in ours):
            return None
        ratios = {name: ours[name] / theirs[name] for name in ours}
        return second, of_figure(goal.name, ratios, more=goal.more)


@dataclass(slots=True)
class Exploration:
    """What is explored, and where its runs are kept."""

    sources: Mapping[str, Source]
    designs: Sequence[str]
    settings: Settings
    budget: int
    goals: Sequence[Goal]
    folder: Path
    most: Mapping[str, float] = field(default_factory=dict)
    workers: int | None = None
    watch: Watch | None = None
    _runs: int = 0

    def explore(self) -> Explored:
        """Run all rounds."""
        asked = candidates(self.designs, self.budget)
        parts = self._parts(len(asked))
        last: dict[Candidate, Tried] = {}
        rounds = []
        for number, part in enumerate(parts):
            samples = SAMPLES if number == len(parts) - 1 else FEW
            said = f"1/{part} of each workload, {samples} windows or seeds"
            several = "" if len(asked) == 1 else "s"
            scheduler.tell(
                self.watch,
                f"round {number + 1} of {len(parts)}: {len(asked):,} candidate{several}, {said}",
            )
            tried = self._round(number, asked, part, samples)
            rounds.append((len(asked), said))
            last |= {one.candidate: one for one in tried}
            if number < len(parts) - 1:
                asked = self._kept(tried)
        final = [one for one in last.values() if one.round == len(parts) - 1 and self._fits(one)]
        if len(near := self._near(final)) > 1:
            said = f"1/1 of each workload again, {AGAIN} windows or seeds"
            scheduler.tell(self.watch, f"{len(near)} near-ties: {said}")
            again = self._round(len(parts) - 1, near, parts[-1], AGAIN)
            rounds.append((len(near), said))
            last |= {one.candidate: one for one in again}
            final = [last[one.candidate] for one in final if self._fits(last[one.candidate])]
        front = self._fronts(final)[0] if final else []
        return Explored(list(last.values()), front, rounds, self._runs, self.goals, final)

    def _near(self, final: Sequence[Tried]) -> list[Candidate]:
        """The best in each goal, and those that the samples do not tell from it."""
        found: dict[Candidate, None] = {}
        for goal in self.goals if final else ():
            ordered = sorted(final, key=lambda one: goal.cost(one.figures[goal.name]))
            tied = [one for one in ordered[1:] if one.near(ordered[0], goal.name)]
            if tied:
                half = ordered[0].candidate.bytes // 2
                small = [one for one in ordered if one.candidate.bytes <= half]
                again = [ordered[0], *tied[:LAST], *small[:1]]
                found |= dict.fromkeys(one.candidate for one in again)
        return list(found)

    def _parts(self, number: int) -> list[int]:
        """The share of a workload that each round has, as one in so many."""
        rounds = 1
        while number > LAST and rounds < 5:
            number, rounds = -(-number // KEEP), rounds + 1
        lengths = [_length(source) for source in self.sources.values()]
        shortest = min(length / SHORTEST[what] for what, length in lengths)
        while rounds > 1 and KEEP ** (rounds - 1) > max(shortest, 1):
            rounds -= 1
        return [KEEP**power for power in reversed(range(rounds))]

    def _round(
        self, number: int, asked: Sequence[Candidate], part: int, samples: int
    ) -> list[Tried]:
        groups: dict[tuple[str, ...], list[tuple[Candidate, str, dict[str, Any]]]] = {}
        for candidate in asked:
            variant = dict(candidate.sizes)
            points = [
                Point(name, source, candidate.design, variant)
                for name, whole in self.sources.items()
                for source in _samples(whole, part, samples)
            ]
            varying = Simulated(points, self.settings)
            for index, point in enumerate(points):
                row = varying.row(index)
                names = (*options(row), *sorted(row))
                groups.setdefault(names, []).append((candidate, point.trace, row))
        kept = Rows(self.settings.machine, self.folder, self.workers, self.watch)
        found: dict[Candidate, dict[str, list[Mapping[str, Any]]]] = {one: {} for one in asked}
        for _, group in sorted(groups.items()):
            answers = kept.run(kept.sweep([row for _, _, row in group]))
            self._runs += len(group)
            for (candidate, trace, _), answer in zip(group, answers, strict=True):
                found[candidate].setdefault(trace, []).append(answer)
        return [self._judged(one, number, found[one]) for one in asked]

    def _judged(
        self, candidate: Candidate, number: int, answers: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> Tried:
        errors = [str(one["error"]) for each in answers.values() for one in each if one["error"]]
        if errors:
            return Tried(candidate, number, {}, {}, errors[0])
        figures, halves, each, known = {}, {}, {}, {}
        for name in dict.fromkeys([*(goal.name for goal in self.goals), *self.most]):
            # A sample is a window or a seed of every workload.
            of_each = [_of(one, name) for one in answers.values()]
            samples = [_mean(one) for one in zip(*of_each, strict=True)]
            figures[name] = _mean(samples)
            each[name] = dict(zip(answers, map(_mean, of_each), strict=True))
            if len(samples) in STUDENT:
                known[name] = samples
                spread = statistics.stdev(samples)
                halves[name] = STUDENT[len(samples)] * spread / math.sqrt(len(samples))
        return Tried(candidate, number, figures, halves, each=each, samples=known)

    def _fits(self, one: Tried) -> bool:
        """Whether it ran, and keeps its limits."""
        return one.error is None and all(one.figures[n] <= most for n, most in self.most.items())

    def _kept(self, tried: Sequence[Tried]) -> list[Candidate]:
        """The best quarter, front by front, the best of each design and of less memory."""
        fitting = [one for one in tried if self._fits(one)] or list(tried)
        ordered = [one for front in self._fronts(fitting) for one in front]
        kept = ordered[: max(LAST, -(-len(tried) // KEEP))]
        for design in self.designs:
            if all(one.candidate.design != design for one in kept):
                kept += [one for one in ordered if one.candidate.design == design][:1]
        for part in SPENT[1:]:
            small = [one for one in ordered if one.candidate.bytes <= self.budget // part]
            kept += small[:1]
        chosen = {one.candidate for one in kept}
        return [one.candidate for one in tried if one.candidate in chosen]

    def _fronts(self, tried: Sequence[Tried]) -> list[list[Tried]]:
        """The candidates that none beats, then those that none of the others beats, and so on."""
        left, fronts = list(tried), []
        while left:
            front = [one for one in left if not any(self._beats(other, one) for other in left)]
            front.sort(key=lambda one: self._values(one)[0])
            fronts.append(front)
            left = [one for one in left if one not in front]
        return fronts

    def _values(self, one: Tried) -> list[float]:
        """The values of its goals, as numbers of which less is better."""
        if not one.figures:
            return [math.inf] * len(self.goals)
        return [goal.cost(one.figures[goal.name]) for goal in self.goals]

    def _beats(self, one: Tried, other: Tried) -> bool:
        ours, theirs = self._values(one), self._values(other)
        no_worse = all(a <= b for a, b in zip(ours, theirs, strict=True))
        return no_worse and (ours != theirs or one.candidate.bytes < other.candidate.bytes)


def _of(answers: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = [answer.get(name) for answer in answers]
    if any(value is None for value in values):
        raise _core.SardonyxError(f"--goal {name}: not every run has it; choose another figure")
    return [float(value) for value in values if value is not None]


def _mean(values: Sequence[float]) -> float:
    """The geometric mean; the arithmetic one for figures that may be 0."""
    if all(value > 0 for value in values):
        return statistics.geometric_mean(values)
    return statistics.fmean(values)


def _length(source: Source) -> tuple[str, int]:
    """The unit of a workload, and its length."""
    if isinstance(source, ProgramSource):
        return "transactions", source.transactions
    if isinstance(source, SynthSource) and source.like is None:
        rungs = {str(rung["name"]): int(rung["records"]) for rung in json.loads(_core.ladder())}
        whole = source.records or rungs[source.name]
        return "records", min(whole, source.limit or whole)
    assert isinstance(source, TraceSource | SynthSource), "a mix is refused before"
    whole = int(json.loads(_core.trace_info(source.replace(limit=None).json(), None))["records"])
    return "records", min(whole, source.limit or whole)


def _samples(source: Source, part: int, samples: int) -> list[Source]:
    """Windows of a recording, together a ``part``-th of it, or seeds of a generated workload."""
    _, length = _length(source)
    each = max(1, length // part // min(samples, SAMPLES))
    if isinstance(source, ProgramSource):
        return [source.replace(transactions=each, seed=source.seed + one) for one in range(samples)]
    if isinstance(source, SynthSource):
        return [source.replace(limit=each, seed=source.seed + one) for one in range(samples)]
    assert isinstance(source, TraceSource), "a mix is refused before"
    return [source.replace(limit=each, window=one / max(1, samples - 1)) for one in range(samples)]


def rows(explored: Explored, names: str) -> list[dict[str, Any]]:
    """A row for each candidate, as a sweep's report draws them."""
    keys = dict.fromkeys(key for one in explored.tried for key, _ in one.candidate.sizes)
    return [
        {"point": str(number), "trace": names, "design": one.candidate.design, "round": one.round}
        | dict.fromkeys(keys)
        | dict(one.candidate.sizes)
        | dict(one.figures)
        for number, one in enumerate(explored.tried)
        if one.error is None
    ]
