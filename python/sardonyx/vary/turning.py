"""Which conclusions turn, which choice decides them, and at which of its values they turn.

A conclusion turns if it is another one in some cell. Along every choice that can bear on it the
usual cell is run at both ends and, where that turns it, between these, until the value at which it
turns is between two near ones. Left out: conclusions in words (``runs.conclusions``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from sardonyx.runs import scheduler
from sardonyx.runs.conclusions import Conclusion, conclusions, differs
from sardonyx.runs.jobs import Point, Settings, Simulations
from sardonyx.runs.results import Run
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sensitivity import MEAN, Concluded, Key, Said, Sensitivity, Turn, named
from sardonyx.sizes import duration
from sardonyx.vary.cells import Cell, Cells, Space, possible
from sardonyx.vary.indices import deciding, split
from sardonyx.vary.intervals import TAIL, count, quantile
from sardonyx.vary.ranges import Range
from sardonyx.vary.runs import Simulated

#: The number of halvings between a choice's value and its low or high: the value at which a
#: conclusion turns is known to a 32nd of that.
HALVINGS = 5

#: The conclusions from the runs of a cell, by their names.
Judge: TypeAlias = Callable[[Cell, Sequence[Run | None]], Mapping[str, Conclusion]]


@dataclass(slots=True)
class _Bracket:
    """A conclusion along a choice: it holds at ``until`` and no more at ``since``."""

    name: str
    kind: str
    key: Range
    until: str
    since: str

    @property
    def middle(self) -> str | None:
        """A value between both, if there is any."""
        return None if self.key.others else self.key.between(self.until, self.since)


@dataclass(slots=True)
class Turning:
    """What cells say, and where it turns along one choice.

    ``usual`` are the runs of the usual cell. ``depends`` says whether a run depends on a choice,
    and ``bears`` whether a choice can bear on a conclusion.
    """

    cells: Cells
    keys: Sequence[Range]
    judge: Judge
    usual: Sequence[Run | None]
    depends: Callable[[int, str], bool]
    bears: Callable[[Conclusion, str], bool]
    headline: Callable[[Conclusion], bool] = lambda _: True
    note: str = ""
    _known: dict[tuple[str, str, int], Run | None] = field(default_factory=dict)

    def study(
        self, drawn: Sequence[Cell], judged: Sequence[Mapping[str, Conclusion]]
    ) -> Sensitivity:
        """The conclusions over cells that have been run, ``judged`` those of each."""
        cell = self.cells.alone(0, self.keys)
        plain = self.judge(cell, self.usual)
        values = {name: [each.values[name] for each in drawn] for name in cell.values}
        found = {
            name: concluded
            for name, each in plain.items()
            if (concluded := self._concluded(each, judged, values)) is not None
        }
        turns = self._turns(plain, self._asked(plain, found))
        choices = [*self.cells.choices(self.keys), *self.cells.left_out()]
        return Sensitivity(
            len(drawn),
            self.cells.seed,
            sum(len(each.numbers) for each in drawn) + len(self._known),
            tuple(self._key(each, cell.varying.designs) for each in choices),
            tuple(
                replace(
                    each,
                    says=tuple(
                        replace(said, turns=tuple(turns.get((name, said.kind), ())))
                        for said in each.says
                    ),
                )
                for name, each in found.items()
            ),
            sum(len(each.says) for each in plain.values()),
            self.cells.redrawn,
            self.cells.failures_said,
            self.note,
        )

    def _concluded(
        self,
        each: Conclusion,
        judged: Sequence[Mapping[str, Conclusion]],
        values: Mapping[str, Sequence[str]],
    ) -> Concluded | None:
        """A conclusion over cells; nothing of one that never turns and is no headline."""
        there = [(number, cell.get(each.name)) for number, cell in enumerate(judged)]
        known = [
            (number, one, one.value)
            for number, one in there
            if one is not None and one.value is not None
        ]
        figures = [value for _, _, value in known]
        headline = self.headline(each)
        words = {
            kind: [not differs(word, one.says.get(kind, word)) for _, one, _ in known]
            for kind, word in each.says.items()
        }
        if not known or (all(map(all, words.values())) and not headline):
            return None
        bearing = {
            name: [of[number] for number, _, _ in known]
            for name, of in values.items()
            if self.bears(each, name)
        }
        shares = deciding(bearing, figures, each.unit, self.cells.seed)
        first = next((s.choices[0] for s in named(shares) if len(s.choices) == 1), None)
        says = []
        for kind, word in each.says.items():
            holds, held = words[kind], count(words[kind])
            at = split(first, bearing[first], holds) if first and not all(holds) else None
            if held is not None:
                says.append(Said(kind, word, held, at))
        return Concluded(
            each.measure, each.title, each.design, each.over, each.workload, each.value, each.unit,
            quantile(figures, 0.5), quantile(figures, TAIL), quantile(figures, 1 - TAIL),
            shares, tuple(says), headline,
        )  # fmt: skip

    # ---- where they turn

    def _asked(
        self, plain: Mapping[str, Conclusion], found: Mapping[str, Concluded]
    ) -> list[_Bracket]:
        """Both ends of the choices that can bear on each conclusion that turns."""
        return [
            _Bracket(name, said.kind, key, key.value, end)
            for name, each in found.items()
            for said in each.says
            if said.turned
            for key in self.cells.choices(self.keys)
            if self.bears(plain[name], key.parameter)
            for end in key.ends
        ]

    def _turns(
        self, plain: Mapping[str, Conclusion], asked: Sequence[_Bracket]
    ) -> dict[tuple[str, str], list[Turn]]:
        """The turns of conclusions by name and kind, along the choices that turn them alone."""
        ends = self._there(plain, [(each, each.since) for each in asked])
        open_: list[tuple[_Bracket, Turn]] = []
        for each, there in zip(asked, ends, strict=True):
            holds = plain[each.name].says[each.kind]
            becomes = None if there is None else there.says.get(each.kind)
            if there is not None and becomes is not None and differs(holds, becomes):
                end = each.since
                turn = Turn(each.key.parameter, becomes, each.until, end, end, there.value)
                open_.append((each, turn))
        halving = [each for each, _ in open_]
        for _ in range(HALVINGS):
            halved = [(each, middle) for each in halving if (middle := each.middle) is not None]
            halving = []
            for (each, middle), there in zip(halved, self._there(plain, halved), strict=True):
                says = None if there is None else there.says.get(each.kind)
                if says is None:
                    continue  # nothing is known between these ends
                if differs(plain[each.name].says[each.kind], says):
                    each.since = middle
                else:
                    each.until = middle
                halving.append(each)
        found: dict[tuple[str, str], list[Turn]] = {}
        for each, turn in open_:
            where = replace(turn, until=each.until, since=each.since)
            found.setdefault((each.name, each.kind), []).append(where)
        return found

    def _there(
        self, plain: Mapping[str, Conclusion], asked: Sequence[tuple[_Bracket, str]]
    ) -> list[Conclusion | None]:
        """Each conclusion in the usual cell with this value of its choice; nothing where it cannot
        be drawn.
        """
        needs: dict[tuple[str, str], set[int]] = {}
        for each, value in asked:
            needs.setdefault((each.key.parameter, value), set()).update(plain[each.name].needs)
        cells = {at: self.cells.alone(number, self.keys, *at) for number, at in enumerate(needs)}
        able = {at for at, cell in cells.items() if possible(cell.runs)}
        for name, value in sorted(cells.keys() - able):
            self.cells.failed(f"{name} = {value}: no machine has it with the usual other values")
        todo = [
            (at, number)
            for at in cells
            for number in sorted(needs[at])
            if at in able and self.depends(number, at[0]) and (*at, number) not in self._known
        ]
        answers = self.cells.run([(cells[at], number) for at, number in todo])
        for at, number in todo:
            self._known[*at, number] = answers[cells[at].number, number]
        judged = {at: self.judge(cells[at], self._under(*at)) for at in able}
        return [judged.get((each.key.parameter, value), {}).get(each.name) for each, value in asked]

    def _under(self, name: str, value: str) -> list[Run | None]:
        """The runs of the usual cell with this value, as far as they depend on it."""
        return [
            self._known.get((name, value, number), run) for number, run in enumerate(self.usual)
        ]

    def _key(self, each: Range, designs: Sequence[str]) -> Key:
        """What was varied, or why it was not."""
        own = [one for number, one in enumerate(designs) if self.depends(number, each.parameter)]
        reason = "" if each.left_out else each.reason
        return Key(
            each.parameter, each.value, each.values, each.why, reason,
            tuple(dict.fromkeys(own)), each.left_out,
        )  # fmt: skip


def of_comparison(
    points: Sequence[Point],
    shared: Settings,
    runs: Sequence[Run],
    folder: Path,
    *,
    draws: int,
    seed: int,
    workers: int | None = None,
    watch: Watch | None = None,
) -> Sensitivity:
    """What a comparison's conclusions depend on, over so many cells.

    Headlines are the means of each design beside the baseline, or beside the first design.
    """
    labels = [(point.trace, point.design) for point in points]

    def of_keys(_: Mapping[str, str], keys: Sequence[tuple[str, str]]) -> Simulations:
        return Simulations(replace(shared, overrides=tuple(keys)), points)

    assumed = frozenset(key for run in runs for key in run.assumed)
    space = Space((), of_keys, shared.machine, shared.overrides)
    cells = Cells(space, draws, seed, folder, assumed, workers, watch)
    keys = cells.open_keys()
    plain = conclusions(labels, runs)
    first = next((each.over for each in plain.values()), "")
    several = len({point.trace for point in points}) > 1
    known = Simulated(points, shared)

    def depends(number: int, key: str) -> bool:
        return known.depends(number, key, runs[number])

    def headline(each: Conclusion) -> bool:
        return each.over == first and (each.workload == MEAN or not several)

    turning = Turning(
        cells,
        keys,
        lambda _, found: conclusions(labels, found),
        runs,
        depends,
        lambda each, key: any(depends(number, key) for number in each.needs),
        headline,
    )
    drawn = cells.draw(keys)
    asked = [(cell, number) for cell in drawn for number in cell.numbers]
    took = [(run.metric("requests"), run.metric("requests_per_second")) for run in runs]
    seconds = draws * sum(number / speed for number, speed in took if number and speed)
    workers = workers or scheduler.processors()
    answers = cells.run(
        asked,
        f"sensitivity: {draws} cells of {len(keys)} assumed keys, {len(asked):,} runs, about "
        f"{duration(seconds / workers)} on {workers} workers; then each key alone",
    )
    judged = [
        conclusions(labels, [answers[cell.number, number] for number in cell.numbers])
        for cell in drawn
    ]
    return turning.study(drawn, judged)
