"""What depends on assumed keys: each key at its low and its high, all drawn together, and the
values at which conclusions flip.

Every run is a point of a sweep in a folder, so that what was done is found again after a kill.
Left out: what else a key may be (``varying``), what runs conclude (``runs.sensitivity``), and how
it is shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx.runs import scheduler
from sardonyx.runs.conclusions import Conclusion, conclusions, differs
from sardonyx.runs.jobs import Point, Settings, is_key
from sardonyx.runs.results import Run
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sensitivity import (
    DRAWS,
    MEAN,
    Flip,
    Headline,
    Sensitivity,
    Together,
    Tried,
    Varied,
)
from sardonyx.sweeps.rows import Rows, RowSweep, options, run_of
from sardonyx.sweeps.varying import Range, Setting, Simulated, Varying

#: The number of halvings between a key's value and its low or high: the value at which a conclusion
#: flips is known to a 32nd of that.
HALVINGS = 5
#: A draw is repeated this often if a machine cannot have the value with those drawn before.
AGAIN = 64

#: The conclusions from runs that were made under a setting.
Judge: TypeAlias = Callable[[Sequence[Run | None], Setting], Mapping[str, Conclusion]]


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A sweep that is to be run, and which point under which setting each of its rows is."""

    of: RowSweep
    asked: Sequence[tuple[int, Setting]]


@dataclass(slots=True)
class Study:
    """Runs that have been made, what they conclude, and where their variations are kept.

    ``headlines`` names the conclusions whose swings are wanted.
    """

    varying: Varying
    runs: Sequence[Run]
    judge: Judge
    headlines: Callable[[Conclusion], bool]
    folder: Path
    workers: int | None = None
    draws: int = DRAWS
    seed: int = 0
    watch: Watch | None = None
    note: str = ""
    _known: dict[tuple[int, frozenset[tuple[str, str]]], Run | str] = field(default_factory=dict)

    # ---- runs

    def ask(self, asked: Iterable[tuple[int, Setting]]) -> None:
        """Have these points under these settings run; what was run before is found again."""
        for sweep in self._sweeps(asked):
            self._run(sweep)

    def _sweeps(self, asked: Iterable[tuple[int, Setting]]) -> list[_Sweep]:
        """The sweeps that run what is not known; settings that cannot be run are known at once."""
        wanted = {
            (number, frozenset(setting.items())): None
            for number, setting in asked
            if (number, frozenset(setting.items())) not in self._known
        }
        groups: dict[tuple[str, ...], list[tuple[int, Setting, dict[str, Any]]]] = {}
        for number, items in wanted:
            setting = dict(items)
            if (problem := self.varying.refused(number, setting)) is not None:
                self._known[number, items] = problem
                continue
            row = self.varying.row(number, setting)
            groups.setdefault(options(row), []).append((number, setting, row))
        return [self._sweep(rows) for _, rows in sorted(groups.items())]

    def get(self, number: int, setting: Setting) -> Run | None:
        """The run of a point under a setting; nothing of one that failed."""
        found = self._known.get((number, frozenset(setting.items())))
        return found if isinstance(found, Run) else None

    def error(self, number: int, setting: Setting) -> str | None:
        """Why it failed, if it did."""
        found = self._known.get((number, frozenset(setting.items())))
        return found if isinstance(found, str) else None

    def depends(self, number: int, key: str) -> bool:
        """Whether a point's run depends on a key that is assumed."""
        return self.varying.depends(number, key, self.runs[number])

    def own(self, number: int, setting: Setting) -> dict[str, str]:
        """Those of the settings on which a point depends."""
        return {key: text for key, text in setting.items() if self.depends(number, key)}

    def under(self, setting: Setting, numbers: Iterable[int] | None = None) -> list[Run | None]:
        """All runs, those of these points under a setting."""
        changed = set(range(len(self.runs)) if numbers is None else numbers)
        found: list[Run | None] = []
        for number, run in enumerate(self.runs):
            own = self.own(number, setting) if number in changed else {}
            found.append(self.get(number, own) if own else run)
        return found

    def _sweep(self, rows: Sequence[tuple[int, Setting, dict[str, Any]]]) -> _Sweep:
        """One sweep over rows with the same options; what keys a row lacks are its point's."""
        keys = sorted({name for _, _, row in rows for name in row if is_key(name)})
        plain = {number: self.varying.keys(number) for number in {number for number, _, _ in rows}}
        whole = [
            {name: row.get(name, _text(plain[number].get(name))) for name in keys} | row
            for number, _, row in rows
        ]
        return _Sweep(self._rows.sweep(whole), [(number, setting) for number, setting, _ in rows])

    def _run(self, sweep: _Sweep) -> None:
        answers = self._rows.run(sweep.of)
        for (number, setting), answer in zip(sweep.asked, answers, strict=True):
            self._known[number, frozenset(setting.items())] = run_of(answer, self.runs[number])

    @property
    def _rows(self) -> Rows:
        return Rows(self.varying.machine, self.folder, self.workers, self.watch)

    # ---- the study

    def study(self) -> Sensitivity:
        """Run all of it; the answer depends on points, seed and draws alone."""
        everything = range(len(self.runs))
        known = self.varying.ranges()
        used = {key: [n for n in everything if self.depends(n, key.parameter)] for key in known}
        keys = [key for key in known if used[key]]
        alone = [(key, end) for key in keys for end in key.ends]
        draws = self._draws([key for key in keys if key.ends])
        single = [(n, {key.parameter: end}) for key, end in alone for n in used[key]]
        together = [(n, own) for draw in draws for n in everything if (own := self.own(n, draw))]
        sweeps = self._sweeps([*single, *together])
        self._tell(len({key.parameter for key, _ in alone}), single, together, sweeps)
        for sweep in sweeps:
            self._run(sweep)
        plain = self.judge(self.runs, {})
        judged = {
            (key.parameter, end): self.judge(self.under(one), one)
            for key, end in alone
            for one in ({key.parameter: end},)
        }
        flips = self._flips(keys, plain, judged)
        drawn = [self.judge(self.under(draw), draw) for draw in draws]
        shown = [each for each in plain.values() if self.headlines(each)]
        failures = self._failures()
        return Sensitivity(
            tuple(self._varied(key, used[key], shown, judged) for key in keys),
            tuple(_headline(each, drawn) for each in shown),
            tuple(flips),
            tuple(_together(plain, drawn)),
            len(draws),
            self.seed,
            len(self._known),
            sum(len(each.says) for each in plain.values()),
            tuple(failures),
            self.note,
        )

    def _draws(self, keys: Sequence[Range]) -> list[dict[str, str]]:
        """All keys drawn together, this many times; each draw is a possible machine."""
        found = []
        for number in range(self.draws if keys else 0):
            generator = random.Random(f"{self.seed} {number}")
            draw: dict[str, str] = {}
            for key in keys:
                for _ in range(AGAIN):
                    value = key.drawn(generator)
                    if self.varying.possible({**draw, key.parameter: value}):
                        draw[key.parameter] = value
                        break
            found.append(draw)
        return found

    def _tell(
        self,
        keys: int,
        single: Sequence[tuple[int, Setting]],
        together: Sequence[tuple[int, Setting]],
        sweeps: Sequence[_Sweep],
    ) -> None:
        """Tell how many points there are to do, and roughly how long they take."""

        def seconds(number: int, setting: Setting) -> float:
            return self.varying.seconds(number, setting, self.runs[number]) or 0.0

        workers = self.workers or scheduler.processors()
        found = sum(sweep.of.done for sweep in sweeps)
        left = 1 - found / max(1, sum(sweep.of.plan.count for sweep in sweeps))
        total = left * sum(seconds(*each) for each in (*single, *together)) / workers
        about = f"{found:,} were done before, " * bool(found)
        about += f"about {_duration(total)} on {workers} workers"
        scheduler.tell(
            self.watch,
            f"sensitivity: {len(single):,} runs of {keys} assumed keys one at a time, "
            f"{len(together):,} of {self.draws} draws of all together: {about}; then the values "
            f"at which conclusions flip. What is done is kept in {self.folder}",
        )

    def _flips(
        self,
        keys: Sequence[Range],
        plain: Mapping[str, Conclusion],
        judged: Mapping[tuple[str, str], Mapping[str, Conclusion]],
    ) -> list[Flip]:
        """The conclusions that flip, each with the value from which on it does."""
        by_name = {key.parameter: key for key in keys}
        found: dict[tuple[str, str, str, str], tuple[str, str]] = {}
        open_: dict[tuple[str, str, str, str], set[tuple[str, str]]] = {}
        for (parameter, end), there in judged.items():
            for name, each in plain.items():
                for kind, holds in each.says.items():
                    if name in there and differs(holds, there[name].says.get(kind, holds)):
                        start = by_name[parameter].value
                        found[parameter, end, name, kind] = (start, end)
                        open_.setdefault((parameter, end, start, end), set()).add((name, kind))
        for _ in range(HALVINGS):
            asked: dict[tuple[str, str, str, str], str] = {}
            for interval in open_:
                key = by_name[interval[0]]
                middle = None if key.others else key.between(interval[2], interval[3])
                if middle is not None:
                    asked[interval] = middle
            self.ask(
                (number, {interval[0]: middle})
                for interval, middle in asked.items()
                for number in sorted({n for name, _ in open_[interval] for n in plain[name].needs})
                if self.depends(number, interval[0])
            )
            following: dict[tuple[str, str, str, str], set[tuple[str, str]]] = {}
            for interval, middle in asked.items():
                parameter, end, a, b = interval
                needs = {n for name, _ in open_[interval] for n in plain[name].needs}
                one = {parameter: middle}
                there = self.judge(self.under(one, needs), one)
                for name, kind in open_[interval]:
                    holds = plain[name].says[kind]
                    says = there[name].says.get(kind) if name in there else None
                    flipped = says is not None and says != holds
                    half = (a, middle) if flipped else (middle, b)
                    found[parameter, end, name, kind] = half
                    following.setdefault((parameter, end, *half), set()).add((name, kind))
            open_ = following
        flips = []
        for (parameter, end, name, kind), (until, since) in found.items():
            each, there_ = plain[name], judged[parameter, end][name]
            flips.append(
                Flip(
                    name, each.measure, each.title, each.design, each.over, each.workload, kind,
                    each.says[kind], there_.says[kind], each.value, parameter, until, since, end,
                    there_.value, each.unit,
                )
            )  # fmt: skip
        order = {name: number for number, name in enumerate(plain)}
        return sorted(flips, key=lambda f: (f.workload != MEAN, order[f.name], f.kind != "sign"))

    def _varied(
        self,
        key: Range,
        used: Sequence[int],
        shown: Sequence[Conclusion],
        judged: Mapping[tuple[str, str], Mapping[str, Conclusion]],
    ) -> Varied:
        tried = []
        for end in key.ends:
            there = judged[key.parameter, end]
            setting = {key.parameter: end}
            errors = [error for n in used if (error := self.error(n, setting))]
            figures = {each.name: there[each.name].value for each in shown if each.name in there}
            tried.append(Tried(end, figures, errors[0] if errors else None))
        return Varied(
            key.parameter,
            key.value,
            key.why,
            key.reason,
            key.low or None,
            key.high or None,
            key.others,
            tuple(dict.fromkeys(self.varying.designs[n] for n in used)),
            tuple(tried),
            key.left_out,
        )

    def _failures(self) -> list[str]:
        found: dict[str, int] = {}
        for (number, items), answer in self._known.items():
            if isinstance(answer, str):
                keys = ", ".join(f"{k} = {v}" for k, v in sorted(items)[:3])
                more = f" and {len(items) - 3} more keys" if len(items) > 3 else ""
                text = f"{self.varying.designs[number]} with {keys}{more}: {answer}"
                found[text] = found.get(text, 0) + 1
        return sorted(
            f"{text} ({count} runs)" if count > 1 else text for text, count in found.items()
        )


def of_comparison(
    points: Sequence[Point],
    shared: Settings,
    runs: Sequence[Run],
    folder: Path,
    **options: Any,
) -> Sensitivity:
    """What a comparison's conclusions depend on; ``options`` are those of ``Study``.

    Headlines are the means of each design beside the baseline, or beside the first design.
    """
    labels = [(point.trace, point.design) for point in points]

    def judge(each: Sequence[Run | None], _: Setting) -> dict[str, Conclusion]:
        return conclusions(labels, each)

    first = next((each.over for each in judge(runs, {}).values()), "")
    several = len({point.trace for point in points}) > 1
    return Study(
        Simulated(points, shared),
        runs,
        judge,
        lambda each: each.over == first and (each.workload == MEAN or not several),
        folder,
        **options,
    ).study()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min"


def _headline(each: Conclusion, drawn: Sequence[Mapping[str, Conclusion]]) -> Headline:
    values = [there[each.name].value for there in drawn if each.name in there]
    known = [value for value in values if value is not None]
    return Headline(
        each.name,
        each.title,
        each.design,
        each.over,
        each.value,
        each.unit,
        min(known, default=None),
        max(known, default=None),
    )


def _together(
    plain: Mapping[str, Conclusion], drawn: Sequence[Mapping[str, Conclusion]]
) -> Iterable[Together]:
    for name, each in plain.items():
        for kind, holds in each.says.items():
            said = [there[name].says.get(kind) for there in drawn if name in there]
            known = [word for word in said if word is not None]
            flips = sum(differs(holds, word) for word in known)
            if flips:
                yield Together(
                    name, each.title, each.design, each.over, each.workload, kind, holds, flips,
                    len(known),
                )  # fmt: skip
