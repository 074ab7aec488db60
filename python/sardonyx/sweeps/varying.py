"""Runs that can be made again under other values of their assumed keys: what each key may be, and
the row of a sweep that asks for a run under a setting.

Left out: which settings are tried, and what they conclude (``sensitivity``).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from sardonyx import _core
from sardonyx.questions import ProgramSource, Stream, SynthSource, TraceSource
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.merging import algorithms
from sardonyx.runs.results import Run
from sardonyx.runs.sources import known_programs, text_of
from sardonyx.runs.stores import StoreRuns
from sardonyx.runs.tailbench import PLAIN, TimedRuns

#: Assumed keys whose other values are another design or machine, and no uncertainty about this one.
OTHERS = frozenset({"cores", "encryption.enabled"})
#: The settings of one run, by key, as ``--set`` takes them.
Setting: TypeAlias = Mapping[str, str]


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
    #: The reason why the key cannot matter, or that no source gives other values.
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
        """Any of its values."""
        return self.at(generator.random())

    def at(self, share: float) -> str:
        """The value so far through its values; numbers even, or by their size where they span a
        factor of 4. ``share`` is from 0 to below 1.
        """
        if self.others:
            words = sorted((self.value, *self.others))
            return words[int(share * len(words))]
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
    return ranges_of(json.loads(_core.machine(machine, list(overrides)))["assumed"])


def ranges_of(assumed: Iterable[Mapping[str, Any]]) -> list[Range]:
    """The same of keys as the simulator lists them."""
    found = []
    for each in assumed:
        said = each["range"] or {}
        value = str(each["value"]).strip('"')
        key: dict[str, Any] = {
            "parameter": str(each["parameter"]),
            "value": value,
            "why": str(each["why"]),
        }
        if key["parameter"] in OTHERS:
            found.append(Range(**key, left_out="another value is another design"))
        elif "inert" in said:
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


class Varying(Protocol):
    """Runs by their numbers, and what else they could be."""

    @property
    def machine(self) -> str:
        """The machine of all runs, by its name or file."""

    @property
    def designs(self) -> Sequence[str]:
        """The design of each run."""

    def ranges(self) -> list[Range]:
        """The assumed keys, with what each may be."""

    def depends(self, number: int, key: str, run: Run) -> bool:
        """Whether a run depends on a key that is assumed."""

    def possible(self, setting: Setting) -> bool:
        """Whether there is a machine with these values."""

    def refused(self, number: int, setting: Setting) -> str | None:
        """Why the run cannot be had under a setting; nothing if it can."""

    def keys(self, number: int) -> Mapping[str, Any]:
        """The values of all keys that the run has without a setting."""

    def row(self, number: int, setting: Setting) -> dict[str, Any]:
        """The run under a setting as a row of a sweep: subject, options, keys."""

    def seconds(self, number: int, setting: Setting, run: Run) -> float | None:
        """How long it takes under a setting, about, seen from the run; unknown is nothing."""

    def parameters(self, setting: Setting) -> Mapping[str, Any]:
        """The parameters of the machine under a setting."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulations of designs on traces and programs."""

    points: Sequence[Point]
    shared: Settings

    @property
    def machine(self) -> str:
        return self.shared.machine

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.points]

    def ranges(self) -> list[Range]:
        return ranges(self.machine, self.shared.overrides)

    def depends(self, number: int, key: str, run: Run) -> bool:
        point = self.points[number]
        return key in run.assumed and key not in point.variant

    def possible(self, setting: Setting) -> bool:
        try:
            _core.machine(self.machine, [*self.shared.overrides, *setting.items()])
        except _core.SardonyxError:
            return False
        return True

    def refused(self, number: int, setting: Setting) -> str | None:
        overrides = tuple(self._overrides(number, setting))
        try:
            _core.machine(self.machine, list(overrides))
            if isinstance(self.points[number].source, ProgramSource):
                job = self.points[number].job(self.shared)
                _core.check_job(job.replace(overrides=overrides).json())
        except _core.SardonyxError as error:
            return str(error)
        return None

    def keys(self, number: int) -> Mapping[str, Any]:
        overrides = list(self.points[number].job(self.shared).overrides)
        found: dict[str, Any] = json.loads(_core.machine(self.machine, overrides))["parameters"]
        return found

    def row(self, number: int, setting: Setting) -> dict[str, Any]:
        point = self.points[number]
        job, source = point.job(self.shared), point.source
        row: dict[str, Any] = {
            "design": point.design,
            "copies": job.copies,
            "distinct": job.distinct,
            "verify": job.verify,
            "warmup": job.warmup if not job.warmup_share else f"{100 * job.warmup_share!r}%",
        }
        row |= {"threads": True} if job.threads else {}
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
                row |= {"trace": text_of(source), "seed": source.seed}
            else:
                assert isinstance(source, TraceSource), "a mix is refused before"
                clash = source.path in known_programs()
                row["trace"] = f"./{source.path}" if clash else source.path
                row |= {} if source.window is None else {"window": source.window}
            row |= {} if source.limit is None else {"limit": source.limit}
        return row | dict(self._overrides(number, setting))

    def seconds(self, number: int, setting: Setting, run: Run) -> float | None:
        requests, speed = run.metric("requests"), run.metric("requests_per_second")
        if not requests or not speed:
            return None
        return requests / speed

    def parameters(self, setting: Setting) -> Mapping[str, Any]:
        pairs = [*self.shared.overrides, *setting.items()]
        found: dict[str, Any] = json.loads(_core.machine(self.machine, pairs))["parameters"]
        return found

    def _overrides(self, number: int, setting: Setting) -> list[tuple[str, str]]:
        job = self.points[number].job(self.shared)
        return [*job.overrides, *setting.items()]


@dataclass(frozen=True, slots=True)
class MergedInTime:
    """Applications whose pages are merged meanwhile. ``seconds_each`` is what a run takes."""

    runs: TimedRuns
    seconds_each: float = 0.0

    @property
    def machine(self) -> str:
        return self.runs.machine

    def _known(self, number: int) -> dict[str, Any]:
        question = self.runs.question(self.runs.points[number])
        found: dict[str, Any] = json.loads(_core.merge_timed_keys(question.json()))
        return found

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.runs.points]

    def ranges(self) -> list[Range]:
        assumed = {
            each["parameter"]: each
            for number in range(len(self.runs.points))
            for each in self._known(number)["assumed"]
        }
        return ranges_of(assumed.values())

    def depends(self, number: int, key: str, run: Run) -> bool:
        point = self.runs.points[number]
        if key in point.variant or key not in run.assumed:
            return False
        # Without merging nothing merges, but the machines and their load exist all the same.
        known = algorithms()
        if not known[point.design].merges:
            return all(key not in one.keys for one in known.values())
        # KSM's thread drives every algorithm; other keys belong to the algorithm in their name.
        owner = key.partition(".")[0]
        return owner in (point.design, "ksm") or owner not in known

    def possible(self, setting: Setting) -> bool:
        return all(self.refused(number, setting) is None for number in range(len(self.designs)))

    def refused(self, number: int, setting: Setting) -> str | None:
        question = self.runs.question(self.runs.points[number])
        whole = question.replace(sets=(*question.sets, *setting.items()))
        try:
            _core.check_merge_timed(whole.json())
        except _core.SardonyxError as error:
            return str(error)
        return None

    def keys(self, number: int) -> Mapping[str, Any]:
        found: dict[str, Any] = self._known(number)["settings"]
        return found

    def row(self, number: int, setting: Setting) -> dict[str, Any]:
        question = self.runs.question(self.runs.points[number])
        return {
            "application": question.application,
            "design": question.design,
            **({} if question.memory == PLAIN else {"memory": question.memory}),
            "seed": question.seed,
            **dict(question.sets),
            **setting,
        }

    def seconds(self, number: int, setting: Setting, run: Run) -> float | None:
        return self.seconds_each

    def parameters(self, setting: Setting) -> Mapping[str, Any]:
        machine: dict[str, Any] = json.loads(_core.machine(self.machine, []))["parameters"]
        settings: dict[str, Any] = self._known(0)["settings"]
        return machine | settings | dict(setting)


@dataclass(frozen=True, slots=True)
class Stored:
    """Stores on generated streams. Their keys are drawn by name: no machine lists them."""

    runs: StoreRuns

    @property
    def machine(self) -> str:
        return ""

    @property
    def designs(self) -> Sequence[str]:
        return [point.design for point in self.runs.points]

    def ranges(self) -> list[Range]:
        return []

    def depends(self, number: int, key: str, run: Run) -> bool:
        return key.partition(".")[0] == self.runs.points[number].design

    def possible(self, setting: Setting) -> bool:
        return all(self.refused(number, setting) is None for number in range(len(self.designs)))

    def refused(self, number: int, setting: Setting) -> str | None:
        question = self.runs.points[number].question
        try:
            design = question.design.having(list(setting.items()))
            _core.check_store(question.replace(design=design).json())
        except _core.SardonyxError as error:
            return str(error)
        return None

    def keys(self, number: int) -> Mapping[str, Any]:
        return self.runs.points[number].question.design.values()

    def row(self, number: int, setting: Setting) -> dict[str, Any]:
        question = self.runs.points[number].question
        assert isinstance(question.workload, Stream), "only streams are drawn"
        own = {f"{question.design.name}.{key}": text for key, text in question.design.keys}
        return {
            **question.workload.document("kind"),
            "workload": "stream",
            "design": question.design.name,
            "block": question.block_bytes,
            **own,
            **setting,
        }

    def seconds(self, number: int, setting: Setting, run: Run) -> float | None:
        return run.metric("elapsed_seconds")

    def parameters(self, setting: Setting) -> Mapping[str, Any]:
        return {}
