"""Reads a sweep's file into its plan; a problem names its place and a remedy, before any run."""

from __future__ import annotations

import difflib
import json
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import _core, files, layers
from sardonyx.runs.jobs import is_key
from sardonyx.runs.results import Scalar
from sardonyx.runs.sources import unknown
from sardonyx.sweeps.condition import LARGEST, Condition
from sardonyx.sweeps.inputs import Changed, Input, Inputs, locate
from sardonyx.sweeps.kinds import KINDS
from sardonyx.sweeps.kinds.kind import Kind, Subject
from sardonyx.sweeps.plan import MOST_POINTS, MOST_REPEATS, Axis, Place, Plan, check_goal, digest

#: The keys of ``[sweep]`` besides a kind's lists and options.
OWN = ("designs", "seeds", "repeats", "where", "goals")
TABLES = ("sweep", "set", "axes", "zip")
#: The axis that is meant by the name of a list.
SINGULAR = {"designs": "design", "seeds": "seed", "machines": "machine", "repeats": "repeat"}


def read(
    source: str | os.PathLike[str] | Mapping[str, Any],
    before: Callable[[str], Mapping[str, tuple[str, int]]] = lambda _: {},
    inputs: dict[str, Input] | None = None,
    base: Path = Path(),
) -> Plan:
    """The plan of a file, or of a document of the same shape.

    ``before`` gives, for a plan's hash, the contents that its inputs had when it began, if it has.
    ``inputs`` are where they are, if that is known. What a document names may be in the folder
    ``base``, too. Files of designs are run.
    """
    if isinstance(source, Mapping):
        place, document = Place("sweep", base=base), source
    else:
        path = Path(source)
        if path.is_dir():
            raise _core.SardonyxError(f"{path}: is a directory; name the sweep's TOML file")
        try:
            text = files.read_text(path)
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
            raise _core.SardonyxError(f"{path}: is not a plan of a sweep: {error}") from error
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            raise _core.SardonyxError(f"{path}: is not valid TOML: {error}") from error
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
        settings = [*kind.options, *kind.aliases]
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
        if (size := math.prod(len(axis.steps) for axis in axes)) > MOST_POINTS:
            raise self._bad(
                "sweep",
                "",
                f"its axes have {size:,} points together, and a sweep at most {MOST_POINTS:,}; "
                "leave values out, or make several sweeps",
            )
        names = [name for axis in axes for name in axis.names]
        for name in names:
            if names.count(name) > 1 or name in fixed:
                raise self._bad(
                    "sweep", "", f"{name} is given twice; give it in one place, fixed or as an axis"
                )
        if kind.subject not in names:
            listed = " or ".join(f"{name} = [..]" for name in kind.listed)
            raise self._bad("sweep", "", f"names nothing to run; give {listed}")
        if kind.designed and "design" not in names:
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
            if not kind.designed:
                raise self._bad("sweep", "designs", f"a {kind.name} has none; leave it out")
            designs = self._list("sweep", "designs", sweep["designs"])
            steps = tuple((n,) for each in designs for n in self._names("sweep", "designs", each))
            axes.append(Axis(("design",), tuple(dict.fromkeys(steps))))
        for name, values in self._table("axes").items():
            own = self._check_name("axes", name, settings)
            listed_values = self._list("axes", name, values)
            if own == "design":
                steps = tuple(
                    (n,) for each in listed_values for n in self._names("axes", name, each)
                )
            else:
                steps = tuple((self._step("axes", name, own, value),) for value in listed_values)
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
                    raise self._bad("sweep", "seeds", f"{seed!r} is not a seed; give 0 to 2^50 - 1")
            axes.append(Axis(("seed",), tuple((seed,) for seed in seeds)))
        if "repeats" in sweep:
            repeats = sweep["repeats"]
            whole = isinstance(repeats, int) and not isinstance(repeats, bool)
            if not whole or not 1 <= repeats <= MOST_REPEATS:
                raise self._bad(
                    "sweep", "repeats", f"{repeats!r}: give a whole number, 1 to {MOST_REPEATS:,}"
                )
            axes.append(Axis(("repeat",), tuple((number,) for number in range(repeats))))
        for axis in axes:
            for step in axis.steps:
                if axis.steps.count(step) > 1 if len(axis.steps) < 1000 else False:
                    what = ", ".join(f"{n} = {v}" for n, v in zip(axis.names, step, strict=True))
                    raise self._bad("sweep", "", f"{what} is listed twice; list each value once")
        return tuple(axes)

    def _check_name(self, table: str, name: str, settings: Sequence[str]) -> str:
        """The setting of an axis or of a fixed key."""
        kind = self.kind
        if is_key(name):
            return name
        own = SINGULAR.get(name, name)
        if own in (kind.subject, *kind.listed, *_singular(kind)):
            return kind.subject
        own_names = [*settings, *(["design"] if kind.designed else [])]
        if own in own_names and table != "set":
            return own
        known = [*own_names, kind.subject] if table != "set" else []
        if not known:
            raise self._bad(
                table, name, "is not a key of a machine; those have a dot, as esd.efit_ways"
            )
        raise self._bad(
            table, name, unknown("setting", name, known) + "; a machine's keys have dots"
        )

    def _step(self, table: str, key: str, own: str, value: object) -> Any:
        if own == self.kind.subject:
            listed = "programs" if key in ("program", "programs") else self.kind.listed[0]
            return self._subject(table, key, listed, value)
        if own != "design":
            return self._scalar(table, key, value)
        designs = self._names(table, key, value)
        if len(designs) > 1:
            raise self._bad(
                table,
                key,
                f"{value}: has {len(designs)} designs, and here stands one; name each: "
                f"{', '.join(designs)}",
            )
        return designs[0]

    def _names(self, table: str, key: str, value: object) -> list[str]:
        """The name of a design, or all names in a file, which is here or in the sweep's folder."""
        text = self._text(table, key, value)
        if not text.endswith(".py"):
            return [text]
        beside = self.place.base / text
        try:
            return layers.load(text if os.path.isfile(text) or not beside.is_file() else beside)
        except _core.SardonyxError as error:
            raise self._bad(table, key, str(error)) from error

    def _subject(self, table: str, key: str, listed: str, value: object) -> Subject:
        if isinstance(value, list) and self.kind.several:
            subject: Subject = tuple(self._text(table, key, each) for each in value)
            if not subject:
                raise self._bad(table, key, "has an empty list of images; name at least one")
        else:
            subject = self._text(table, key, value)
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
                    except Changed:
                        raise
                    except _core.SardonyxError as error:
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
            place = self.place.at("sweep", "goals")
            name, _ = check_goal(place, self._text("sweep", "goals", goal))
            if name not in self.kind.figures:
                near = difflib.get_close_matches(name, sorted(self.kind.figures), n=3, cutoff=0.5)
                meant = f"did you mean {' or '.join(near)}? " if near else ""
                raise self._bad(
                    "sweep",
                    "goals",
                    f'a {self.kind.name} has no figure "{name}"; {meant}'
                    "docs/reference/metrics.md lists those of runs, and results.parquet has all "
                    "as columns",
                )
        return tuple(goals)

    def _table(self, name: str) -> Mapping[str, Any]:
        table = self.document.get(name, {})
        if not isinstance(table, Mapping):
            raise self._bad(name, "", f"is a table; write [{name}] with a line for each key")
        return dict(_leaves(table)) if name in ("set", "axes") else table

    def _list(self, table: str, key: str, value: object) -> list[Any]:
        if not isinstance(value, list | tuple) or not value:
            raise self._bad(
                table, key, f"{value!r} is not a list; write [..] with one value at least"
            )
        return list(value)

    def _text(self, table: str, key: str, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise self._bad(table, key, f"{value!r} is not a name; write it in quotes")
        return value

    def _scalar(self, table: str, key: str, value: object) -> Scalar:
        if not isinstance(value, bool | int | float | str):
            raise self._bad(table, key, f"{value!r} is not a number, text, true or false")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._bad(table, key, f"{value!r} is not a finite number")
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            raise self._bad(table, key, f"{value!r} is beyond 64 bits; give a smaller number")
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
