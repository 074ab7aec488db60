"""What hangs on assumed keys: each key at its low and its high, all of them drawn together, and the
values at which conclusions flip.

Every run is a point of a sweep in a folder, so that what was done is found again after a kill.
Ranges are the machine's own (``_core.machine``). Left out: what runs conclude
(``runs.sensitivity``), and how it is shown.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.conclusions import Conclusion, conclusions, differs
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.results import Cause, Run
from sardonyx.runs.sensitivity import (
    MEAN,
    Flip,
    Headline,
    Sensitivity,
    Together,
    Tried,
    Varied,
)
from sardonyx.runs.sources import SYNTH, ProgramSource, SynthSource, known_programs
from sardonyx.sweeps import reading
from sardonyx.sweeps.folder import RESULTS, ROW, Folder, Index
from sardonyx.sweeps.kinds import BOOKED
from sardonyx.sweeps.plan import Plan
from sardonyx.sweeps.run import Sweep, View

#: Draws of all keys together: a conclusion that flips in a tenth of all settings and more is found
#: with 95 % of certainty, since 0.9^30 is 4 %.
DRAWS = 30
#: Halvings of what lies between a key's value and its low or high: the value at which a conclusion
#: flips is known to a 32nd of that.
HALVINGS = 5
#: The key that says how many cores run. It is left out of the draws, which would take as many times
#: as long.
CORES = "cores"
#: Keys that are drawn again where a machine cannot have the value beside those drawn before.
AGAIN = 64

#: Settings of one run, by key, as ``--set`` takes them.
Setting: TypeAlias = Mapping[str, str]
#: What runs conclude that were made under a setting.
Judge: TypeAlias = Callable[[Sequence[Run | None], Setting], Mapping[str, Conclusion]]
#: What shows a sweep while it runs.
Shown: TypeAlias = Callable[[Plan], AbstractContextManager[View]]


@dataclass(frozen=True, slots=True)
class Range:
    """What an assumed key may be: numbers between two, or a few other words."""

    parameter: str
    value: str
    why: str
    low: str = ""
    high: str = ""
    whole: bool = False
    others: tuple[str, ...] = ()
    reason: str = ""
    #: Why it cannot matter, or that nobody has said what else it may be.
    left_out: str | None = None

    @property
    def ends(self) -> list[str]:
        """The values to try, alone."""
        if self.left_out is not None:
            return []
        return [each for each in (self.others or (self.low, self.high)) if not self._is(each)]

    def _is(self, text: str) -> bool:
        return text == self.value or (not self.others and float(text) == float(self.value))

    @property
    def _grid(self) -> bool:
        """Whether the value and both ends are powers of two, so that what lies between is, too."""
        numbers = [float(each) for each in (self.low, self.value, self.high)]
        return self.whole and all(n >= 1 and math.log2(n).is_integer() for n in numbers)

    def between(self, a: str, b: str, share: float = 0.5) -> str | None:
        """A value so far from one to another; nothing if there is none between."""
        x, y = float(a), float(b)
        if self._grid:
            exponent = math.log2(x) + share * (math.log2(y) - math.log2(x))
            found = float(2 ** round(exponent))
        elif min(x, y) > 0 and max(x, y) >= 4 * min(x, y):
            found = x * (y / x) ** share
        else:
            found = x + share * (y - x)
        if self.whole and not self._grid:
            found = round(found)
        if min(x, y) < found < max(x, y):
            return self._text(found)
        if self._grid or not self.whole or abs(x - y) < 2:
            return None
        return self._text(math.floor((x + y) / 2))

    def drawn(self, generator: random.Random) -> str:
        """Any of its values; numbers even, or by their size where they span a factor of 4."""
        if self.others:
            words = sorted((self.value, *self.others))
            return words[int(generator.random() * len(words))]
        share = generator.random()
        low, high = float(self.low), float(self.high)
        if self._grid:
            steps = round(math.log2(high / low)) + 1
            return self._text(low * 2 ** int(share * steps))
        if low > 0 and high >= 4 * low:
            found = low * (high / low) ** share
        else:
            found = low + share * (high - low)
        return self._text(round(found) if self.whole else found)

    def _text(self, number: float) -> str:
        return str(int(number)) if self.whole else f"{number:.4g}"


def ranges(machine: str, overrides: Sequence[tuple[str, str]]) -> list[Range]:
    """The assumed keys of a machine, with what each may be."""
    found = []
    for each in json.loads(_core.machine(machine, list(overrides)))["assumed"]:
        said = each["range"] or {}
        value = str(each["value"]).strip('"')
        key: dict[str, Any] = {
            "parameter": str(each["parameter"]),
            "value": value,
            "why": str(each["why"]),
        }
        if "inert" in said:
            found.append(Range(**key, left_out=f"changes no figure: {said['inert']}"))
        elif "others" in said:
            others = tuple(str(word) for word in said["others"])
            found.append(Range(**key, others=others, reason="its other words"))
        elif said:
            numbers = {name: said[name] for name in ("low", "high", "whole")}
            found.append(Range(**key, **numbers, reason=str(said["why"])))
        else:
            found.append(Range(**key, left_out="the machine gives no range"))
    return found


@dataclass(frozen=True, slots=True)
class _Sweep:
    """A sweep that is to be run: its points and settings, each with its number in the plan."""

    plan: Plan
    folder: Folder
    rows: Sequence[tuple[int, Setting, int]]

    @property
    def done(self) -> int:
        """Points that were done before."""
        index = Index(self.folder)
        index.refresh()
        return sum(point.name in index for point in self.plan.points()) if len(index) else 0


@dataclass(slots=True)
class Study:
    """Points that have been run, what they conclude, and where their variations are kept.

    ``assumed`` are, by point, the keys on which its run depends. ``headlines`` names the
    conclusions whose swings are wanted.
    """

    points: Sequence[Point]
    shared: Settings
    runs: Sequence[Run]
    judge: Judge
    headlines: Callable[[Conclusion], bool]
    folder: Path
    workers: int | None = None
    draws: int = DRAWS
    seed: int = 0
    shown: Shown = lambda _: nullcontext(lambda _: None)
    say: Callable[[str], None] = lambda _: None
    note: str = ""
    _known: dict[tuple[int, frozenset[tuple[str, str]]], Run | str] = field(default_factory=dict)

    # ---- runs

    def ask(self, asked: Iterable[tuple[int, Setting]]) -> None:
        """Have these points under these settings run; what was run before is found again."""
        for sweep in self._sweeps(asked):
            self._run(sweep)

    def _sweeps(self, asked: Iterable[tuple[int, Setting]]) -> list[_Sweep]:
        """The sweeps that run what is not known; what cannot be run is known at once."""
        wanted = {
            (number, frozenset(setting.items())): None
            for number, setting in asked
            if (number, frozenset(setting.items())) not in self._known
        }
        groups: dict[tuple[str, ...], list[tuple[int, Setting, dict[str, Any]]]] = {}
        for number, items in wanted:
            setting = dict(items)
            if (problem := self._refused(number, setting)) is not None:
                self._known[number, items] = problem
                continue
            row = self._row(number, setting)
            names = tuple(sorted(name for name in row if "." not in name))
            groups.setdefault(names, []).append((number, setting, row))
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
        point, run = self.points[number], self.runs[number]
        if key == CORES:
            return CORES in run.assumed and run.copies == 1 and point.copies is None
        return key in run.assumed and key not in point.variant

    def own(self, number: int, setting: Setting) -> dict[str, str]:
        """Those of the settings on which a point depends."""
        return {key: text for key, text in setting.items() if self.depends(number, key)}

    def under(self, setting: Setting, numbers: Iterable[int] | None = None) -> list[Run | None]:
        """All runs, those of these points under a setting."""
        changed = set(range(len(self.points)) if numbers is None else numbers)
        found: list[Run | None] = []
        for number, run in enumerate(self.runs):
            own = self.own(number, setting) if number in changed else {}
            found.append(self.get(number, own) if own else run)
        return found

    def _overrides(self, number: int, setting: Setting) -> list[tuple[str, str]]:
        job = self.points[number].job(self.shared)
        return [*job.overrides, *(pair for pair in setting.items() if pair[0] != CORES)]

    def _refused(self, number: int, setting: Setting) -> str | None:
        """Why the machine, or the program on it, cannot be had; nothing if it can."""
        overrides = tuple(self._overrides(number, setting))
        try:
            _core.machine(self.shared.machine, list(overrides))
            source = self.points[number].source
            if isinstance(source, ProgramSource):
                job = self.points[number].job(self.shared)
                _core.check_job(job.model_copy(update={"overrides": overrides}).model_dump_json())
        except _core.SardonyxError as error:
            return str(error)
        return None

    def _row(self, number: int, setting: Setting) -> dict[str, Any]:
        """A point under a setting as a row of a sweep: subject, options, keys."""
        point = self.points[number]
        job, source = point.job(self.shared), point.source
        cores = setting.get(CORES)
        row: dict[str, Any] = {
            "design": point.design,
            "copies": int(cores) if cores else job.copies,
            "distinct": True if cores else job.distinct,
            "warmup": job.warmup if not job.warmup_share else f"{100 * job.warmup_share!r}%",
        }
        if isinstance(source, ProgramSource):
            row |= {
                "trace": source.name,
                "transactions": source.transactions,
                "transaction_size": source.item_bytes,
                "footprint": source.footprint,
                "seed": source.seed,
                "software_log": source.software_log,
            }
        else:
            if isinstance(source, SynthSource):
                records = "" if source.records is None else f":{source.records}"
                row |= {"trace": f"{SYNTH}{source.name}{records}", "seed": source.seed}
            else:
                clash = source.path in known_programs()
                row["trace"] = f"./{source.path}" if clash else source.path
                row["middle"] = source.middle
            row |= {} if source.limit is None else {"limit": source.limit}
        return row | dict(self._overrides(number, setting))

    def _sweep(self, rows: Sequence[tuple[int, Setting, dict[str, Any]]]) -> _Sweep:
        """One sweep over rows with the same options."""
        keys = sorted({name for _, _, row in rows for name in row if "." in name})
        plain: dict[int, Mapping[str, Any]] = {}
        columns: dict[str, list[Any]] = {}
        seen: dict[str, int] = {}
        places: list[int] = []
        for number, _, row in rows:
            if number not in plain:
                job = self.points[number].job(self.shared)
                machine = json.loads(_core.machine(self.shared.machine, list(job.overrides)))
                plain[number] = machine["parameters"]
            whole = {name: row.get(name, _text(plain[number].get(name))) for name in keys} | row
            text = json.dumps(whole, sort_keys=True)
            if text not in seen:
                seen[text] = len(seen)
                for name, value in whole.items():
                    columns.setdefault(name, []).append(value)
            places.append(seen[text])
        document = {"sweep": {"machine": self.shared.machine}, "zip": [columns]}
        plan = reading.read(document)
        folder = Folder(self.folder / plan.id)
        plan = reading.read(document, folder.before)
        folder.check(plan)
        whose = [
            (number, setting, place)
            for (number, setting, _), place in zip(rows, places, strict=True)
        ]
        return _Sweep(plan, folder, whose)

    def _run(self, sweep: _Sweep) -> None:
        with self.shown(sweep.plan) as view:
            Sweep(sweep.plan, sweep.folder, self.workers, view=view).run()
        answers = _answers(sweep.folder)
        for number, setting, place in sweep.rows:
            self._known[number, frozenset(setting.items())] = self._answer(number, answers[place])

    def _answer(self, number: int, row: Mapping[str, Any]) -> Run | str:
        if row["error"] is not None:
            return str(row["error"])
        run = self.runs[number]
        causes: dict[str, dict[str, Any]] = {}
        metrics = {}
        for name, value in row.items():
            if name in ROW or isinstance(value, str | bool):
                continue
            if name.startswith("cause."):
                _, cause, booked = name.split(".", 2)
                if booked in BOOKED:
                    causes.setdefault(cause, {})[booked] = value
            elif "." not in name:
                metrics[name] = value
        return Run(
            run.trace,
            run.design,
            run.machine,
            int(row["copies"]),
            dict(run.variant),
            metrics=metrics,
            causes={name: Cause(**each) for name, each in causes.items()},
            assumed=run.assumed,
        )

    # ---- the study

    def study(self) -> Sensitivity:
        """Run all of it; the answer depends on points, seed and draws alone."""
        everything = range(len(self.points))
        known = ranges(self.shared.machine, self.shared.overrides)
        used = {key: [n for n in everything if self.depends(n, key.parameter)] for key in known}
        keys = [key for key in known if used[key]]
        alone = [(key, end) for key in keys for end in key.ends]
        draws = self._draws([key for key in keys if key.ends and key.parameter != CORES])
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
        """All keys drawn together, so many times; each draw is a machine that can be had."""
        found = []
        for number in range(self.draws if keys else 0):
            generator = random.Random(f"{self.seed} {number}")
            draw: dict[str, str] = {}
            for key in keys:
                for _ in range(AGAIN):
                    value = key.drawn(generator)
                    try:
                        pairs = [*draw.items(), (key.parameter, value)]
                        _core.machine(self.shared.machine, [*self.shared.overrides, *pairs])
                    except _core.SardonyxError:
                        continue
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
        """How much there is to do, and about how long that takes."""

        def seconds(number: int, setting: Setting) -> float:
            run = self.runs[number]
            requests, speed = run.metric("requests"), run.metric("requests_per_second")
            factor = float(setting.get(CORES, 1))
            return factor * requests / speed if requests and speed else 0.0

        workers = self.workers or scheduler.processors()
        found = sum(sweep.done for sweep in sweeps)
        left = 1 - found / max(1, sum(sweep.plan.count for sweep in sweeps))
        total = left * sum(seconds(*each) for each in (*single, *together)) / workers
        about = f"{found:,} were done before, " * bool(found)
        about += f"about {_duration(total)} on {workers} workers"
        self.say(
            f"sensitivity: {len(single):,} runs of {keys} assumed keys one at a time, "
            f"{len(together):,} of {self.draws} draws of all together: {about}; then the values "
            f"at which conclusions flip. What is done is kept in {self.folder}"
        )

    def _flips(
        self,
        keys: Sequence[Range],
        plain: Mapping[str, Conclusion],
        judged: Mapping[tuple[str, str], Mapping[str, Conclusion]],
    ) -> list[Flip]:
        """Where conclusions are others, and from which value on."""
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
            tuple(dict.fromkeys(self.points[n].design for n in used)),
            tuple(tried),
            key.left_out,
        )

    def _failures(self) -> list[str]:
        found: dict[str, int] = {}
        for (number, items), answer in self._known.items():
            if isinstance(answer, str):
                keys = ", ".join(f"{k} = {v}" for k, v in sorted(items)[:3])
                more = f" and {len(items) - 3} more keys" if len(items) > 3 else ""
                text = f"{self.points[number].design} with {keys}{more}: {answer}"
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
    """What a comparison's conclusions hang on; ``options`` are those of ``Study``.

    Headlines are the means of each design beside the baseline, or beside the first design.
    """
    labels = [(point.trace, point.design) for point in points]

    def judge(each: Sequence[Run | None], _: Setting) -> dict[str, Conclusion]:
        return conclusions(labels, each)

    first = next((each.over for each in judge(runs, {}).values()), "")
    several = len({point.trace for point in points}) > 1
    return Study(
        points,
        shared,
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


def _answers(folder: Folder) -> list[dict[str, Any]]:
    """The rows of a sweep's results, by number."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(folder.path / RESULTS).to_pylist()
    return rows


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
