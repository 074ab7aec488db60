"""Commands as functions: what is given goes to the native module, which has declared it.

:class:`Command` makes a function of a signature (``sardonyx.questions``): Rust checks what is given
and completes it, the command's module (``known``) answers. The command line prints the answer.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, ParamSpec, Protocol

from sardonyx import _core, questions, values
from sardonyx._core import SardonyxError
from sardonyx.api.known import COMMANDS
from sardonyx.files import FileError, replaced_together
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

P = ParamSpec("P")
#: Statuses beside 0.
CHECK_FAILED = 1
NOTHING_SAID = 3
#: Types of parameters that are lists, and do not take one text for all.
LISTS = ("array", ["array", "object"])


class Told(Protocol):
    """What a command gives: printed for people, written as JSON, kept in a folder."""

    @property
    def status(self) -> int:
        """1 where a check failed and 3 where nothing can be said, else 0."""

    @property
    def notes(self) -> Sequence[str]:
        """What it warns of, a line each."""

    def document(self) -> Any:
        """It as ``--json`` writes it."""

    def tell(self, people: Any) -> None:
        """Print what people read of it on a Rich console."""

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Keep it in a folder, and give the report's path."""


class Answer(dict[str, Any]):
    """What a command has found: its document, as ``--json`` writes it.

    ``status`` is 1 where a check failed and 3 where nothing can be said, else 0; ``notes`` are what
    it warned of. ``shown`` is what ``tell`` needs and the document lacks.
    """

    def __init__(
        self,
        command: str,
        document: Mapping[str, Any],
        status: int = 0,
        notes: Sequence[str] = (),
        shown: Any = None,
    ) -> None:
        super().__init__({"sardonyx": _core.VERSION, **document})
        self.command, self.status, self.notes = command, status, list(notes)
        self.shown = shown

    def __repr__(self) -> str:
        return f"<{self.command}: status {self.status}; {', '.join(self)}>"

    def document(self) -> dict[str, Any]:
        """It as ``--json`` writes it."""
        return dict(self)

    def tell(self, people: Any) -> None:
        """Print what people read of it on a Rich console."""
        module_of(self.command).tell(people, self)

    def table(self, width: int = 100) -> str:
        """What the command line prints of it."""
        from rich.console import Console

        console = Console(width=width, highlight=False, markup=False, emoji=False)
        with console.capture() as captured:
            self.tell(console)
        return captured.get()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.table())}</pre>"

    def figures(self) -> list[Any]:
        """The figures of its report, each with ``plotly()``."""
        return [each for group in self._reporting().groups(self) for each in group.figures]

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write its report, one HTML file."""
        self._reporting().report(self, path)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the document, its origin and its report into a folder, and give the report's path.

        All are there together, or none.
        """
        from sardonyx.runs import origin

        place, module = Path(folder), self._reporting()
        with replaced_together(place) as scratch:
            text = json.dumps(self.document(), indent=1, allow_nan=False) + "\n"
            (scratch / module.FILE).write_text(text, encoding="utf-8")
            origin.save(origin.origin(()), scratch)
            self.report(scratch / "report.html")
        return place / "report.html"

    def _reporting(self) -> ModuleType:
        """Its module, if that has a report of it."""
        module = module_of(self.command)
        if not hasattr(module, "report"):
            raise SardonyxError(
                f"{self.command}: this answer has its table and its document only; `sardonyx "
                f"{self.command} --help` says what the command line writes"
            )
        return module


def module_of(command: str) -> ModuleType:
    """The module that answers a command."""
    return import_module(f"sardonyx.{COMMANDS[command].module}")


class Command(Generic[P]):
    """A command as a function with the parameters of ``signature``: an option of ``None`` is left
    out, one string or path stands for a list of one, and a mapping for KEY=VALUE pairs.

    ``watch`` is called a few times a second with the tasks that run. An interrupt ends the call.

    Raises:
        SardonyxError: Something given is wrong, in the words of the parameters.
    """

    def __init__(self, name: str, signature: Callable[P, None]) -> None:
        self.name, self._signature = name, inspect.signature(signature)
        update_wrapper(self, signature)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        unknown = [name for name in kwargs if name not in self._signature.parameters]
        if unknown:
            raise SardonyxError(
                f"{unknown[0]}: {self.name} has no such parameter{self._near(unknown[0])}"
            )
        try:
            given = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise SardonyxError(f"{self.name}: {error}; see help({self.name})") from error
        watch = given.pop("watch", None)
        try:
            return self.ask(self._listed(given), watch)
        except (SardonyxError, FileError) as error:
            said = re.sub(r"--([a-z][a-z-]*)", lambda found: found[1].replace("-", "_"), str(error))
            if said == str(error):
                raise
            raise SardonyxError(said) from error

    def ask(self, given: Mapping[str, Any], watch: Watch | None = None) -> Any:
        """The answer to what is given, by the names of the parameters; errors name options."""
        whole = json.loads(_core.asked(self.name, json.dumps(given)))
        kind = "".join(word.title() for word in re.split("[ -]", self.name))
        asked = values.read(getattr(questions, kind), whole)
        return module_of(self.name).answer(asked, watch)

    def _listed(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is given as JSON has it, one word as a list where there may be several."""
        fields = json.loads(_core.command(self.name))["properties"]
        found = {name: _plain(each) for name, each in given.items() if each is not None}
        return {
            name: [each]
            if isinstance(each, str | int) and fields[name].get("type") in LISTS
            else each
            for name, each in found.items()
        }

    def _near(self, name: str) -> str:
        near = difflib.get_close_matches(name, list(self._signature.parameters), n=1)
        return f"; did you mean {near[0]}?" if near else ""


def ran(label: str, call: Callable[[_core.Progress], str], watch: Watch | None) -> dict[str, Any]:
    """The document that one native call gives, watched."""
    (found,) = scheduler.run([Task(label, call)], 1, watch)
    document: dict[str, Any] = json.loads(found)
    return document


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, type):
        return getattr(value, "design_name", value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
