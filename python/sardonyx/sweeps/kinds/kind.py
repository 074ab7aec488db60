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
from typing import Annotated, Any, ClassVar, TypeAlias

from sardonyx import _core
from sardonyx.runs import origin
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import unknown
from sardonyx.sizes import parse_size
from sardonyx.sweeps.inputs import Inputs
from sardonyx.values import MisfitError, Value, at_least, read

#: A figure of a result; text for a verdict.
Figure: TypeAlias = float | str | bool | None
#: The subject of a merge: one image or folder, or several.
Subject: TypeAlias = str | tuple[str, ...]


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


class Options(Value):
    """What a point may set besides the keys of its machine."""


class Designed(Options):
    """What a point may set besides, where it is of a design."""

    design: str


def _in_bytes(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else value


#: Bytes from a number, or from ``4K``, ``16M`` or ``1G``.
Bytes: TypeAlias = Annotated[int, _in_bytes]
Positive: TypeAlias = Annotated[int, at_least(1)]
Natural: TypeAlias = Annotated[int, at_least(0)]
#: Cores, as many as the command line takes.
Cores: TypeAlias = Annotated[int, at_least(1, 1024)]


def figure_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Kind:
    """One kind of subject. ``listed`` are the lists of a sweep's file that name its subjects."""

    name: ClassVar[str]
    subject: ClassVar[str]
    listed: ClassVar[tuple[str, ...]]
    options: ClassVar[type[Options]]
    goals: ClassVar[tuple[str, ...]]
    #: Names of numbers that its answers may have, which can be goals.
    figures: ClassVar[frozenset[str]]
    #: Names of options on the command line that differ.
    aliases: ClassVar[Mapping[str, str]] = {}
    seeded: ClassVar[bool] = True
    #: Set if a subject may be several files, as a list.
    several: ClassVar[bool] = False

    @property
    def designed(self) -> bool:
        """Whether its points are of designs."""
        return "design" in self.options.fields()

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

    def read(self, settings: Mapping[str, Any]) -> Any:
        """The options, checked."""
        try:
            return read(self.options, settings)
        except MisfitError as error:
            name = str(error.place[0])
            if error.kind == "unknown":
                known = [*self.options.fields(), *self.aliases]
                raise _core.SardonyxError(f"{unknown('setting', name, known)}") from error
            if error.kind == "missing":
                raise _core.SardonyxError(
                    f"there is no {name}; give {name}s = [..] under [sweep]"
                ) from error
            raise _core.SardonyxError(f"{name} = {settings[name]!r}: {error.problem}") from error


def flat(document: Mapping[str, Any], within: str = "") -> dict[str, Figure]:
    """Figures under dotted names; lists are left out."""
    found: dict[str, Figure] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{within}{name}.")
        elif not isinstance(value, Sequence) or isinstance(value, str):
            found[f"{within}{name}"] = value
    return found
