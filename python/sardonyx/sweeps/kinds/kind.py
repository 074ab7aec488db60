"""What a kind of subject is: a point's settings in, a ``Question`` out.

A question is everything that determines the result, the call that gives it, and a command that asks
the same. Left out: which points there are (``plan``), and the kinds themselves, a file each.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from sardonyx import _core
from sardonyx.runs import origin
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import unknown
from sardonyx.sizes import parse_size, parse_time
from sardonyx.sweeps.inputs import Inputs
from sardonyx.values import Value

#: A figure of a result; text for a verdict.
Figure: TypeAlias = float | str | bool | None
#: The subject of a merge: one image or folder, or several.
Subject: TypeAlias = str | tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """What one point asks. ``identity`` is all that determines the result."""

    identity: Mapping[str, Any]
    ask: Callable[[_core.Progress | None], dict[str, Figure]]
    inputs: tuple[str, ...] = ()
    #: Words of the command line that ask the same; empty if there is no such command.
    command: tuple[str, ...] = ()
    #: Set if its time is measured, so that nothing else may run meanwhile.
    alone: bool = False

    @property
    def name(self) -> str:
        """The hash by which the point is known everywhere."""
        whole = {"sardonyx": build(), **self.identity}
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def refused(settings: Mapping[str, Any], problem: str) -> Question:
    """A point that the simulator does not take: it has a name, and fails with this problem."""

    def ask(_: _core.Progress | None) -> dict[str, Figure]:
        raise _core.SardonyxError(problem)

    return Question({"refused": problem, "settings": dict(settings)}, ask)


@lru_cache
def build() -> str:
    """The program version: the release and the commit, or the library where no commit is known."""
    commit = origin.commit()
    if commit is None or commit.endswith("-dirty"):
        library = Path(str(_core.__file__))
        commit = hashlib.sha256(library.read_bytes()).hexdigest()
    return f"{_core.VERSION} {commit}"


@dataclass(frozen=True, slots=True)
class Option:
    """What a point may set, as Rust declares it: a JSON type, a default and a range.

    ``said`` is set if the command line has it.
    """

    name: str
    declared: Mapping[str, Any]
    said: bool

    @property
    def default(self) -> Any:
        return self.declared.get("default")

    def read(self, value: Any) -> Any:
        """A value of a sweep's file; texts stand for bytes and times."""
        kinds = self.declared.get("type", "string")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        match self.declared.get("format"):
            case "bytes" if isinstance(value, str):
                value = parse_size(value)
            case "seconds" if isinstance(value, str):
                return parse_time(value)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if "boolean" in kinds:
            wanted, fits = "true or false", isinstance(value, bool)
        elif "integer" in kinds:
            wanted, fits = "a whole number", number and isinstance(value, int)
        elif "number" in kinds:
            wanted, fits = "a number", number
        else:
            wanted, fits = "a text", isinstance(value, str) or number
            value = str(value)
        least, most = self.declared.get("minimum"), self.declared.get("maximum")
        if most is not None:
            wanted += f" of {least or 0:,} to {most:,}"
        elif least is not None:
            wanted += f" of at least {least:,}"
        low = fits and number and least is not None and value < least
        if not fits or low or (number and most is not None and value > most):
            raise _core.SardonyxError(f"give {wanted}")
        return value


def options_of(
    command: str,
    *questions: type[Value],
    without: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    **own: Mapping[str, Any],
) -> dict[str, Option]:
    """What points may set: the options of a command that its questions have a field for, by the
    names on the command line (``renamed`` has the fields of those that differ), and some of a
    sweep's ``own`` or of another type there. What is added in Rust is a sweep's at once.
    """
    declared = json.loads(_core.command(command))["properties"]
    fields = {field for question in questions for field in question.fields()}
    known = {
        name: each
        for name, each in declared.items()
        if (not fields or (renamed or {}).get(name, name) in fields)
        and "argument" not in each
        and "argument" in declared.get(each.get("requires"), {"argument": True})
        and "array" not in each.get("type", ())
        and each.get("format") not in ("path", "names", "pairs")
    }
    return {
        name: Option(name, each, name in declared)
        for name, each in (known | own).items()
        if name not in without
    }


def figure_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Kind:
    """One kind of subject. ``listed`` are the lists of a sweep's file that name its subjects."""

    name: ClassVar[str]
    subject: ClassVar[str]
    listed: ClassVar[tuple[str, ...]]
    #: What its points may set, besides their design and keys of a machine.
    options: ClassVar[Mapping[str, Option]]
    #: Whether its points are of designs.
    designed: ClassVar[bool] = True
    goals: ClassVar[tuple[str, ...]]
    #: Names of numbers that its answers may have, which can be goals.
    figures: ClassVar[frozenset[str]]
    #: Names of options on the command line that differ.
    aliases: ClassVar[Mapping[str, str]] = {}
    seeded: ClassVar[bool] = True
    #: Set if a subject may be several files, as a list.
    several: ClassVar[bool] = False

    def check_subject(self, subject: Subject, listed: str) -> None:
        """An error unless there can be such a subject; files are looked for elsewhere."""

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        """The files that this subject reads, as it names them."""
        raise NotImplementedError

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        """What is asked of the subject with these options and keys."""
        raise NotImplementedError

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        """An error if the simulator would refuse it; nothing is computed."""

    def times(self, design: str) -> bool:
        """Whether points of this design are timed, so that nothing may run beside them."""
        return False

    def read(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The options, checked and completed."""
        found: dict[str, Any] = {}
        if self.designed:
            found["design"] = settings["design"]
        for name, value in settings.items():
            if name == "design" and self.designed:
                continue
            if name not in self.options:
                known = [*self.options, *self.aliases]
                raise _core.SardonyxError(f"{unknown('setting', name, known)}")
            try:
                found[name] = self.options[name].read(value)
            except (_core.SardonyxError, ValueError) as error:
                raise _core.SardonyxError(f"{name} = {value!r}: {error}") from error
        for name, option in self.options.items():
            if name not in found and option.declared.get("needed"):
                raise _core.SardonyxError(f"there is no {name}; give {name} = .. under [sweep]")
            found.setdefault(name, option.default)
        return found

    def command(
        self, words: Sequence[str], options: Mapping[str, Any], keys: tuple[Setting, ...]
    ) -> tuple[str, ...]:
        """The words of the command line that set the same; none if it has no such option."""
        found = list(words)
        for key, text in keys:
            found += ["--set", f"{key}={text}"]
        for name, option in self.options.items():
            value = options[name]
            if value == option.default or value is None:
                continue
            if not option.said:
                return ()
            dashed = name.replace("_", "-")
            if isinstance(value, bool):
                found.append(f"--{dashed}" if value else f"--no-{dashed}")
            else:
                seconds = option.declared.get("format") == "seconds"
                found += [f"--{dashed}", f"{value:g}s" if seconds else str(value)]
        return tuple(found)


def asked(
    kind: Callable[..., T], fields: Sequence[str], options: Mapping[str, Any], **own: Any
) -> T:
    """A question of these fields: those among the options, and its own."""
    return kind(**({name: options[name] for name in fields if name in options} | own))


def flat(document: Mapping[str, Any], within: str = "") -> dict[str, Figure]:
    """Figures under dotted names; lists are left out."""
    found: dict[str, Figure] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{within}{name}.")
        elif not isinstance(value, Sequence) or isinstance(value, str):
            found[f"{within}{name}"] = value
    return found
