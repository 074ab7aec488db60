"""A sweep's file: its points, in one order, by their numbers.

The order is that of the file: subjects, designs, the axes of ``[axes]``, each ``[[zip]]``, seeds,
repeats; the last varies fastest. A point is made from its number, so no list of points is held.
Left out: what a point asks (``kinds``), and what is done already (``folder``).
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import operator
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.runs.results import Scalar
from sardonyx.runs.sources import unknown
from sardonyx.sweeps.inputs import Input, Inputs, locate
from sardonyx.sweeps.kinds import (
    KINDS,
    Figure,
    Kind,
    Question,
    Subject,
    as_settings,
    labels,
    refused,
)

#: Points of which every one is checked before the first run; those beyond fail by themselves.
CHECKED = 2_000
#: What ``[sweep]`` may hold besides a kind's lists and options.
OWN = ("designs", "seeds", "repeats", "where", "goals")
TABLES = ("sweep", "set", "axes", "zip")
#: Names of lists where an axis is meant.
SINGULAR = {"designs": "design", "seeds": "seed", "machines": "machine", "repeats": "repeat"}


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
    #: Where its inputs may be, besides the current directory.
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
        known = self.kind.options.model_fields
        own: list[str] = [name for name in ("machine", "copies") if name in known]
        given = {*names, *self.fixed}
        for alias, name in self.kind.aliases.items():
            if alias in given:  # the word of the file
                own = [alias if each == name else each for each in own]
        return list(dict.fromkeys([self.kind.subject, "design", *own, *names]))

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
                row[name] = self.kind.options.model_fields[name].default
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
        return [self.kind.options.model_fields[name].default]

    def assumed(self) -> dict[str, dict[str, Any]]:
        """The machines of the plan by name: source, and what no source gives."""
        if "machine" not in self.kind.options.model_fields:
            return {}
        found = {}
        for name in self.values("machine"):
            machine = json.loads(_core.machine(str(name), []))
            found[str(machine["name"])] = {key: machine[key] for key in ("source", "assumed")}
        return found

    def check(self) -> None:
        """An error if a point cannot be run, as far as that is known without running it."""
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
        """Subject, options, keys of the machine, and which repeat it is."""
        keys = {name: value for name, value in values.items() if "." in name}
        options = {
            self.kind.aliases.get(name, name): value
            for name, value in values.items()
            if "." not in name and name not in (self.kind.subject, "repeat")
        }
        repeat = values.get("repeat", 0)
        return values[self.kind.subject], options, as_settings(keys), repeat

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


# ---- conditions


_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_COMPUTE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over settings, as in ``design == "esd" or esd.efit_ways * 64 <= 512``.

    Comparisons, ``and``, ``or``, ``not``, ``in`` and arithmetic; nothing can be called.
    """

    text: str
    tree: ast.expr = field(repr=False)
    names: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Condition:
        """A condition; ``SardonyxError`` says why there is none."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            problem = error.msg if isinstance(error, SyntaxError) else str(error)
            raise _core.SardonyxError(
                f'{text!r} is no condition ({problem}); write as in design == "esd" or '
                "esd.efit_ways > 4"
            ) from error
        names: set[str] = set()
        cls._check(tree, text, names)
        return cls(text, tree, frozenset(names))

    @classmethod
    def _check(cls, node: ast.AST, text: str, names: set[str]) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            names.add(_dotted(node, text))
            return
        known = (
            ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.BinOp,
            ast.Constant, ast.List, ast.Tuple, ast.Load, *_COMPARE, *_COMPUTE,
        )  # fmt: skip
        if not isinstance(node, known):
            raise _core.SardonyxError(
                f"{text!r} has more than comparisons and arithmetic of settings; leave that out"
            )
        for child in ast.iter_child_nodes(node):
            cls._check(child, text, names)

    def __call__(self, values: Mapping[str, Any]) -> bool:
        try:
            return bool(self._value(self.tree, values))
        except (TypeError, ZeroDivisionError) as error:
            raise _core.SardonyxError(
                f"where = {self.text!r}: {error}; compare like with like"
            ) from error

    def _value(self, node: ast.expr, values: Mapping[str, Any]) -> Any:
        def of(each: ast.expr) -> Any:
            return self._value(each, values)

        match node:
            case ast.Constant():
                return node.value
            case ast.Name() | ast.Attribute():
                return values.get(_dotted(node, self.text))
            case ast.List() | ast.Tuple():
                return [of(each) for each in node.elts]
            case ast.BoolOp():
                test = all if isinstance(node.op, ast.And) else any
                return test(of(each) for each in node.values)
            case ast.UnaryOp():
                return not of(node.operand) if isinstance(node.op, ast.Not) else -of(node.operand)
            case ast.BinOp():
                return _COMPUTE[type(node.op)](of(node.left), of(node.right))
            case ast.Compare():
                left = of(node.left)
                for how, right_node in zip(node.ops, node.comparators, strict=True):
                    right = of(right_node)
                    if not _COMPARE[type(how)](left, right):
                        return False
                    left = right
                return True
        raise AssertionError(node)


def _dotted(node: ast.expr, text: str) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        raise _core.SardonyxError(f"{text!r} has more than comparisons of settings")
    return ".".join([node.id, *reversed(parts)])


# ---- reading


def read(
    source: str | os.PathLike[str] | Mapping[str, Any],
    before: Callable[[str], Mapping[str, tuple[str, int]]] = lambda _: {},
    inputs: dict[str, Input] | None = None,
) -> Plan:
    """The plan of a file, or of a document of the same shape.

    ``before`` gives, for a plan's hash, the contents that its inputs had when it began, if it has.
    ``inputs`` are where they are, if that is known.
    """
    if isinstance(source, Mapping):
        place, document = Place("sweep"), source
    else:
        path = Path(source)
        if path.is_dir():
            raise _core.SardonyxError(f"{path}: is a directory; name the sweep's TOML file")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise _core.SardonyxError(
                f"{path}: there is no such file; give a sweep's TOML file"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise _core.SardonyxError(f"{path}: cannot be read ({error})") from error
        base = path.parent
        try:
            if path.suffix == ".json":  # a plan as a sweep's folder has it
                begun = json.loads(text)
                document, base, text = begun["sweep"], Path(begun["base"]), ""
            else:
                document = tomllib.loads(text)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise _core.SardonyxError(f"{path}: is no plan of a sweep's folder: {error}") from error
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            raise _core.SardonyxError(f"{path}: is no TOML: {error}") from error
        place = Place(str(path), text, base)
    return _Reader(place, document, before).plan(inputs)


class _Reader:
    """Reads one document; every problem names its place and a remedy."""

    def __init__(
        self,
        place: Place,
        document: Mapping[str, Any],
        before: Callable[[str], Mapping[str, tuple[str, int]]],
    ) -> None:
        self.place, self.document, self.before = place, document, before
        for name in document:
            if name not in TABLES:
                raise self._bad(name, "", unknown("table", name, [f"{t}" for t in TABLES]))
        self.sweep = self._table("sweep")
        self.kind = self._kind()

    def plan(self, known_inputs: dict[str, Input] | None) -> Plan:
        """The plan; its inputs are looked for unless it is known where they are."""
        sweep, kind = self.sweep, self.kind
        options = [name for name in kind.options.model_fields if name != "design"]
        settings = [*options, *kind.aliases]
        known = [*kind.listed, *OWN, *settings, kind.subject]
        fixed: dict[str, Scalar] = {}
        for name, value in sweep.items():
            if name in kind.listed or name in OWN:
                continue
            if name == "design" and isinstance(value, str):
                raise self._bad("sweep", name, 'is a list here; write designs = ["baseline"]')
            if name not in settings:
                raise self._bad("sweep", name, unknown("setting", name, known))
            fixed[name] = self._scalar("sweep", name, value)
        for name, value in self._table("set").items():
            self._check_name("set", name, [])
            fixed[name] = self._scalar("set", name, value)
        axes = self._axes(settings)
        names = [name for axis in axes for name in axis.names]
        for name in names:
            if names.count(name) > 1 or name in fixed:
                raise self._bad(
                    "sweep", "", f"{name} is given twice; give it in one place, fixed or as an axis"
                )
        if kind.subject not in names:
            listed = " or ".join(f"{name} = [..]" for name in kind.listed)
            raise self._bad("sweep", "", f"names nothing to run; give {listed}")
        if "design" not in names:
            raise self._bad("sweep", "", 'names no designs; give designs = ["baseline", "esd"]')
        where = self._where(set(names) | set(fixed) | {*settings, "repeat"})
        inputs = self._inputs(axes) if known_inputs is None else Inputs(known_inputs)
        return Plan(self.document, self.place, kind, axes, fixed, self._goals(), inputs, where)

    def _kind(self) -> Kind:
        named = [(kind, name) for kind in KINDS for name in kind.listed if name in self.sweep]
        if not named:
            axes = {SINGULAR.get(name, name) for name in self._all_axes()}
            named = [
                (kind, kind.subject)
                for kind in KINDS
                if axes & {kind.subject, *kind.listed, *_singular(kind)}
            ]
        kinds = list(dict.fromkeys(kind for kind, _ in named))
        lists = [name for kind in KINDS for name in kind.listed]
        if not kinds:
            raise self._bad(
                "sweep", "", f"names nothing to run; give one of {', '.join(lists)} = [..]"
            )
        if len(kinds) > 1:
            both = " and ".join(name for _, name in named)
            raise self._bad("sweep", "", f"has {both}; make a sweep of each")
        return kinds[0]

    def _all_axes(self) -> list[str]:
        names = list(self._table("axes"))
        for zipped in self._zips():
            names += list(zipped)
        return names

    def _zips(self) -> list[Mapping[str, Any]]:
        zips = self.document.get("zip", [])
        if not isinstance(zips, list) or not all(isinstance(each, Mapping) for each in zips):
            raise self._bad("zip", "", "is written [[zip]], with lists of one length below it")
        return list(zips)

    def _axes(self, settings: Sequence[str]) -> tuple[Axis, ...]:
        sweep, kind = self.sweep, self.kind
        axes: list[Axis] = []
        subjects: list[tuple[Any]] = []
        for listed in kind.listed:
            for value in self._list("sweep", listed, sweep[listed]) if listed in sweep else ():
                subjects.append((self._subject("sweep", listed, listed, value),))
        if subjects:
            axes.append(Axis((kind.subject,), tuple(subjects)))
        if "designs" in sweep:
            designs = self._list("sweep", "designs", sweep["designs"])
            steps = tuple((self._text("sweep", "designs", each),) for each in designs)
            axes.append(Axis(("design",), tuple(dict.fromkeys(steps))))
        for name, values in self._table("axes").items():
            own = self._check_name("axes", name, settings)
            steps = tuple(
                (self._step("axes", name, own, value),)
                for value in self._list("axes", name, values)
            )
            axes.append(Axis((own,), steps))
        for zipped in self._zips():
            own_names = [self._check_name("zip", name, settings) for name in zipped]
            columns = [
                [self._step("zip", name, own, value) for value in self._list("zip", name, values)]
                for own, (name, values) in zip(own_names, zipped.items(), strict=True)
            ]
            lengths = {len(column) for column in columns}
            if len(lengths) != 1:
                counts = ", ".join(
                    f"{name} has {len(column)}"
                    for name, column in zip(zipped, columns, strict=True)
                )
                raise self._bad("zip", "", f"its lists go together and must be as long: {counts}")
            axes.append(Axis(tuple(own_names), tuple(zip(*columns, strict=True))))
        if "seeds" in sweep:
            if not kind.seeded:
                raise self._bad("sweep", "seeds", f"a {kind.name} draws nothing; leave it out")
            seeds = self._list("sweep", "seeds", sweep["seeds"])
            for seed in seeds:
                if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**50:
                    raise self._bad("sweep", "seeds", f"{seed!r} is no seed; give 0 to 2^50 - 1")
            axes.append(Axis(("seed",), tuple((seed,) for seed in seeds)))
        if "repeats" in sweep:
            repeats = sweep["repeats"]
            if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
                raise self._bad("sweep", "repeats", f"{repeats!r}: give a whole number from 1")
            axes.append(Axis(("repeat",), tuple((number,) for number in range(repeats))))
        for axis in axes:
            for step in axis.steps:
                if axis.steps.count(step) > 1 if len(axis.steps) < 1000 else False:
                    what = ", ".join(f"{n} = {v}" for n, v in zip(axis.names, step, strict=True))
                    raise self._bad("sweep", "", f"{what} is listed twice; list each value once")
        return tuple(axes)

    def _check_name(self, table: str, name: str, settings: Sequence[str]) -> str:
        """The setting that an axis, or a fixed key, is about."""
        kind = self.kind
        if "." in name:
            return name
        own = SINGULAR.get(name, name)
        if own in (kind.subject, *kind.listed, *_singular(kind)):
            return kind.subject
        if own in (*settings, "design") and table != "set":
            return own
        known = [*settings, "design", kind.subject] if table != "set" else []
        if not known:
            raise self._bad(
                table, name, "is no key of a machine; those have a dot, as esd.efit_ways"
            )
        raise self._bad(
            table, name, unknown("setting", name, known) + "; a machine's keys have dots"
        )

    def _step(self, table: str, key: str, own: str, value: object) -> Any:
        if own == self.kind.subject:
            listed = "programs" if key in ("program", "programs") else self.kind.listed[0]
            return self._subject(table, key, listed, value)
        return self._text(table, key, value) if own == "design" else self._scalar(table, key, value)

    def _subject(self, table: str, key: str, listed: str, value: object) -> Subject:
        if isinstance(value, list) and self.kind.name == "merge":
            subject: Subject = tuple(self._text(table, key, each) for each in value)
            if not subject:
                raise self._bad(table, key, "has an empty list of images; name at least one")
        else:
            subject = self._text(table, key, value)
        if subject == "all" and self.kind.name == "crash":
            raise self._bad(
                table, key, "name the programs one by one; `sardonyx programs` lists them"
            )
        try:
            self.kind.check_subject(subject, listed)
        except _core.SardonyxError as error:
            raise self._bad(table, key, str(error)) from error
        return subject

    def _inputs(self, axes: Sequence[Axis]) -> Inputs:
        before = self.before(digest(self.document))
        inputs = Inputs()
        for axis in axes:
            if self.kind.subject not in axis.names:
                continue
            at = axis.names.index(self.kind.subject)
            for step in axis.steps:
                for name in self.kind.inputs(step[at]):
                    if name in inputs.known:
                        continue
                    places = [Path(), self.place.base]
                    remedy = "give its path from here, or from the sweep's file"
                    try:
                        inputs.known[name] = locate(name, places, before.get(name), remedy)
                    except _core.SardonyxError as error:
                        if name in str(error) and "since" in str(error):
                            raise
                        key = next((k for k in self.kind.listed if k in self.sweep), "")
                        raise self._bad("sweep", key, str(error)) from error
                    except OSError as error:
                        raise self._bad("sweep", "", f"{name}: {error.strerror}") from error
        return inputs

    def _where(self, known: set[str]) -> tuple[Condition, ...]:
        given = self.sweep.get("where")
        if given is None:
            return ()
        conditions = []
        for text in [given] if isinstance(given, str) else self._list("sweep", "where", given):
            try:
                condition = Condition.of(self._text("sweep", "where", text))
            except _core.SardonyxError as error:
                raise self._bad("sweep", "where", str(error)) from error
            for name in sorted(condition.names - known - {self.kind.subject}):
                raise self._bad(
                    "sweep", "where", unknown("axis", name, sorted(known | {self.kind.subject}))
                )
            conditions.append(condition)
        return tuple(conditions)

    def _goals(self) -> tuple[str, ...]:
        given = self.sweep.get("goals")
        goals = self.kind.goals if given is None else self._list("sweep", "goals", given)
        for goal in goals:
            check_goal(self.place.at("sweep", "goals"), self._text("sweep", "goals", goal))
        return tuple(goals)

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self.document.get(name, {})
        if not isinstance(table, Mapping):
            raise self._bad(name, "", f"is a table; write [{name}] with a line for each key")
        return dict(_leaves(table)) if name in ("set", "axes") else table

    def _list(self, table: str, key: str, value: object) -> list[Any]:
        if not isinstance(value, list | tuple) or not value:
            raise self._bad(table, key, f"{value!r} is no list of values; write [..], one at least")
        return list(value)

    def _text(self, table: str, key: str, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise self._bad(table, key, f"{value!r} is no name; write it in quotes")
        return value

    def _scalar(self, table: str, key: str, value: object) -> Scalar:
        finite = not isinstance(value, float) or math.isfinite(value)
        if not isinstance(value, bool | int | float | str) or not finite:
            raise self._bad(table, key, f"{value!r} is no number, text or truth value")
        return value

    def _bad(self, table: str, key: str, problem: str) -> _core.SardonyxError:
        return _core.SardonyxError(f"{self.place.at(table, key)}: {problem}")


def _leaves(table: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Values by dotted names, be they written in quotes or as tables."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{within}{name}.")
        else:
            yield f"{within}{name}", value


def _singular(kind: Kind) -> list[str]:
    return [name.removesuffix("s") for name in kind.listed]


def check_goal(place: str, goal: str) -> tuple[str, bool]:
    """A figure and whether more of it is better, from ``max ipc`` or ``min energy_nj``."""
    words = goal.split()
    if len(words) != 2 or words[0] not in ("max", "min"):
        raise _core.SardonyxError(f'{place}: {goal!r} is no goal; write as in "max ipc"')
    return words[1], words[0] == "max"
