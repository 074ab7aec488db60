"""A sweep's plan: its points, in one order, by their numbers.

The order is that of the file: subjects, designs, the axes of ``[axes]``, each ``[[zip]]``, seeds,
repeats; the last varies fastest. A point is made from its number, so no list of points is held.
Left out: how the file is read (``reading``), what a point asks (``kinds``), and what is done
already (``folder``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sardonyx import _core, layers
from sardonyx.runs.jobs import is_key, texts
from sardonyx.runs.results import Scalar
from sardonyx.runs.sources import SYNTH
from sardonyx.sweeps.condition import Condition
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import Figure, Kind, Question, Subject, refused

#: This many points are checked before the first run; those beyond fail by themselves.
CHECKED = 2_000
#: The most points of a sweep, those that ``where`` leaves out among them, and the most repeats.
MOST_POINTS, MOST_REPEATS = 10_000_000, 10_000


@dataclass(frozen=True, slots=True)
class Axis:
    """Settings that vary together: ``steps`` has a value for each of ``names``."""

    names: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One point: its number in the plan, what it sets, and what it asks."""

    number: int
    subject: Subject
    settings: Mapping[str, Scalar]
    question: Question

    @property
    def name(self) -> str:
        return self.question.name


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sweep is written, for its errors."""

    name: str
    text: str = ""
    #: The folder of its inputs, besides the current directory.
    base: Path = Path()

    def at(self, table: str, key: str = "") -> str:
        """File, line and key, as far as the text shows them."""
        current, found = "", None
        for number, line in enumerate(self.text.splitlines(), 1):
            stripped = line.strip()
            if stripped.startswith("["):
                current = stripped.strip("[] \t").split("]")[0]
                if not key and current == table:
                    found = number
                    break
                continue
            name = stripped.split("=")[0].strip().strip("\"'")
            if key and current == table and name == key:
                found = number
                break
        words = [self.name, *([f"line {found}"] if found else []), f"[{table}]"]
        return ", ".join(words) + (f" {key}" if key else "")


@dataclass(frozen=True)
class Plan:
    """A sweep that is ready to run. ``document`` is its file, read."""

    document: Mapping[str, Any]
    place: Place
    kind: Kind
    axes: tuple[Axis, ...]
    fixed: Mapping[str, Scalar]
    goals: tuple[str, ...]
    inputs: Inputs
    where: tuple[Condition, ...] = ()

    @property
    def size(self) -> int:
        """Numbers of points, those that ``where`` leaves out among them."""
        return math.prod(len(axis.steps) for axis in self.axes)

    @cached_property
    def count(self) -> int:
        """Points."""
        if not self.where:
            return self.size
        return sum(self._wanted(self._values(number)) for number in range(self.size))

    @cached_property
    def id(self) -> str:
        """The hash of the file as it was read; contents and versions are not in it."""
        return digest(self.document)

    @cached_property
    def labels(self) -> dict[Subject, str]:
        """Subjects by short names that tell them apart."""
        column = next(axis for axis in self.axes if self.kind.subject in axis.names)
        at = column.names.index(self.kind.subject)
        return labels(list(dict.fromkeys(step[at] for step in column.steps)))

    @cached_property
    def columns(self) -> list[str]:
        """The names that tell points apart, in the order of the plan; the subject is the first."""
        names = [name for axis in self.axes for name in axis.names]
        known = self.kind.options
        own: list[str] = [name for name in ("machine", "copies") if name in known]
        given = {*names, *self.fixed}
        for alias, name in self.kind.aliases.items():
            if alias in given:  # the word of the file
                own = [alias if each == name else each for each in own]
        if self.kind.designed:
            own.insert(0, "design")
        return list(dict.fromkeys([self.kind.subject, *own, *names]))

    def at(self, number: int) -> Point | None:
        """The point of this number; none if ``where`` leaves it out."""
        values = self._values(number)
        return self._point(number, values) if self._wanted(values) else None

    def wants(self, number: int) -> bool:
        """Whether there is a point of this number."""
        return not self.where or self._wanted(self._values(number))

    def points(self, numbers: Sequence[int] | range | None = None) -> Iterator[Point]:
        """The points of these numbers, of all by default."""
        for number in range(self.size) if numbers is None else numbers:
            if (point := self.at(number)) is not None:
                yield point

    def row(self, point: Point) -> dict[str, Figure]:
        """What tells the point apart, by ``columns``."""
        row: dict[str, Figure] = {}
        for name in self.columns:
            if name == self.kind.subject:
                row[name] = self.labels[point.subject]
            elif name in point.settings:
                row[name] = point.settings[name]
            else:
                row[name] = self.kind.options[name].default
        return row

    def values(self, name: str) -> list[Figure]:
        """The values that a column of the plan may have."""
        if name == self.kind.subject:
            return list(self.labels.values())
        if name in self.fixed:
            return [self.fixed[name]]
        for axis in self.axes:
            if name in axis.names:
                at = axis.names.index(name)
                return [step[at] for step in axis.steps]
        return [self.kind.options[name].default]

    @property
    def is_timed(self) -> bool:
        """Whether some of its points are timed, and so run alone."""
        designs = self.values("design") if self.kind.designed else [""]
        return any(self.kind.times(str(design)) for design in designs)

    @property
    def designs(self) -> list[str]:
        """The designs of its points: of what merges, and of the memory below it, too."""
        known = [*(["design"] if self.kind.designed else []), *self.kind.options]
        columns = [name for name in ("design", "memory") if name in known]
        return list(dict.fromkeys(str(each) for name in columns for each in self.values(name)))

    def check_elsewhere(self) -> None:
        """An error if workers, which are other processes, would not have its designs."""
        layers.check_elsewhere(self.designs)

    def assumed(self) -> dict[str, dict[str, Any]]:
        """The machines of the plan by name: source, and what no source gives."""
        if "machine" not in self.kind.options:
            return {}
        found = {}
        for name in self.values("machine"):
            machine = json.loads(_core.machine(str(name), []))
            found[str(machine["name"])] = {key: machine[key] for key in ("source", "assumed")}
        return found

    def check(self) -> None:
        """An error if a point cannot be run, as far as that is known without running it."""
        self.check_elsewhere()
        checked: set[object] = set()
        tried = 0
        for number in range(self.size):
            values = self._values(number)
            if not self._wanted(values):
                continue
            tried += 1
            if tried > CHECKED:
                return
            subject, options, keys, _ = self._split(values)
            key = (subject, tuple(options.items()), keys)
            if key in checked:
                continue
            checked.add(key)
            try:
                self.kind.check(subject, self.kind.read(options), keys, self.inputs)
            except _core.SardonyxError as error:
                raise self._refused(values, str(error)) from error
        if not tried:
            raise _core.SardonyxError(
                f"{self.place.at('sweep', 'where')}: leaves no point; ask for less"
            )

    def _refused(self, values: Mapping[str, Any], problem: str) -> _core.SardonyxError:
        named = [axis for axis in self.axes if any(name in problem for name in axis.names)]
        table, key = "sweep", ""
        for axis in named:
            name = next(name for name in axis.names if name in problem)
            tables = [t for t in ("axes", "set") if name in self.document.get(t, {})]
            zipped = any(name in each for each in self.document.get("zip", ()))
            table, key = (tables[0] if tables else "zip" if zipped else "sweep"), name
            break
        else:
            for name in self.document.get("set", {}):
                if name in problem:
                    table, key = "set", name
        shown = [
            f"{name} = {values[name]}"
            for axis in self.axes
            for name in axis.names
            if len(axis.steps) > 1
        ]
        point = f" (at {', '.join(shown)})" if shown else ""
        return _core.SardonyxError(f"{self.place.at(table, key)}: {problem}{point}")

    def _values(self, number: int) -> dict[str, Any]:
        values: dict[str, Any] = dict(self.fixed)
        for axis in reversed(self.axes):
            number, step = divmod(number, len(axis.steps))
            values.update(zip(axis.names, axis.steps[step], strict=True))
        return values

    def _wanted(self, values: Mapping[str, Any]) -> bool:
        return all(condition(values) for condition in self.where)

    def _split(
        self, values: Mapping[str, Any]
    ) -> tuple[Subject, dict[str, Any], tuple[tuple[str, str], ...], int]:
        """The subject, the options, the keys of the machine, and the number of the repeat."""
        keys = {name: value for name, value in values.items() if is_key(name)}
        options = {
            self.kind.aliases.get(name, name): value
            for name, value in values.items()
            if not is_key(name) and name not in (self.kind.subject, "repeat")
        }
        repeat = values.get("repeat", 0)
        return values[self.kind.subject], options, tuple(sorted(texts(keys))), repeat

    def _point(self, number: int, values: Mapping[str, Any]) -> Point:
        subject, options, keys, repeat = self._split(values)
        try:
            read = self.kind.read(options)
            question = self.kind.question(subject, read, keys, self.inputs, repeat)
        except _core.SardonyxError as error:  # beyond the points that were checked
            question = refused(values, str(error))
        settings = {name: value for name, value in values.items() if name != self.kind.subject}
        return Point(number, subject, settings, question)


def digest(document: Any) -> str:
    """A short hash of a JSON document."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_goal(place: str, goal: str) -> tuple[str, bool]:
    """A figure and whether more of it is better, from ``max ipc`` or ``min energy_nj``."""
    direction, _, name = goal.strip().partition(" ")
    if not name or direction not in ("max", "min"):
        raise _core.SardonyxError(f'{place}: {goal!r} is not a goal; write as in "max ipc"')
    return name.strip(), direction == "max"


def labels(subjects: Sequence[Subject]) -> dict[Subject, str]:
    """Subjects by the shortest names that tell them apart: stem, else file name, else as given."""

    def each(name_of: Callable[[str], str]) -> list[str]:
        return [
            ", ".join(map(name_of, (subject,) if isinstance(subject, str) else subject))
            for subject in subjects
        ]

    def stem(text: str) -> str:
        return text if text.startswith(SYNTH) else Path(text).stem

    names = next(
        (
            found
            for of in (stem, lambda text: Path(text).name)
            if len(set(found := each(of))) == len(found)
        ),
        each(str),
    )
    return dict(zip(subjects, names, strict=True))
