"""Commands as functions: what is given goes to the native module, which has declared it.

:class:`Command` makes a function of a signature (``sardonyx.questions``) and the work behind it. A
function gives an :class:`Answer`; the command line (``cli``) prints it.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, ParamSpec

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.arguments import in_python
from sardonyx.files import replaced_together
from sardonyx.runs import scheduler
from sardonyx.runs.scheduler import Task, Watch

P = ParamSpec("P")
#: Types of parameters that are lists, and do not take one text for all.
LISTS = ("array", ["array", "object"])


class Answer(dict[str, Any]):
    """What a command has found: its document, as ``--json`` writes it.

    ``status`` is 1 where a check failed and 3 where nothing can be said, else 0; ``notes`` are what
    it warned of.
    """

    def __init__(
        self,
        command: str,
        document: Mapping[str, Any],
        status: int = 0,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(document)
        self.command, self.status, self.notes = command, status, list(notes)

    def __repr__(self) -> str:
        return f"<{self.command}: status {self.status}; {', '.join(self)}>"

    @property
    def _view(self) -> Any:
        return view_of(self.command)

    def tell(self, people: Any) -> None:
        """Print what people read of it on a Rich console."""
        self._view.tell(people, self)

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
        return [each for group in self._view.groups(self) for each in group.figures]

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write its report, one HTML file."""
        self._view.report(self, path)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the document, its origin and its report into a folder, and give the report's path.

        All are there together, or none.
        """
        from sardonyx.runs import origin

        place = Path(folder)
        with replaced_together(place) as scratch:
            text = json.dumps(self, indent=1, allow_nan=False) + "\n"
            (scratch / self._view.FILE).write_text(text, encoding="utf-8")
            origin.save(origin.origin(()), scratch)
            self.report(scratch / "report.html")
        return place / "report.html"


def view_of(command: str) -> Any:
    """The module that shows the answers of a command."""
    name = command.replace(" ", "_").replace("-", "_")
    if find_spec(f"sardonyx.views.{name}") is None:
        raise SardonyxError(
            f"{command}: this answer has its table and its document only; `sardonyx {command} "
            "--help` says what the command line writes"
        )
    return import_module(f"sardonyx.views.{name}")


class Command(Generic[P]):
    """A command as a function with the parameters of ``signature``: an option of ``None`` is left
    out, one string or path stands for a list of one, and a mapping for KEY=VALUE pairs.

    ``watch`` is called a few times a second with the tasks that run. An interrupt ends the call.

    Raises:
        SardonyxError: Something given is wrong, in the words of the parameters.
    """

    def __init__(
        self,
        name: str,
        signature: Callable[P, None],
        work: Callable[[str, Watch | None], Answer],
    ) -> None:
        self.name, self._signature, self._work = name, inspect.signature(signature), work
        update_wrapper(self, signature)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Answer:
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
        return in_python(self.ask)(self._listed(given), watch)

    def ask(self, given: Mapping[str, Any], watch: Watch | None = None) -> Answer:
        """The answer to what is given, by the names of the parameters; errors name options."""
        return self._work(json.dumps(given), watch)

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


def native(
    name: str, signature: Callable[P, None], call: Callable[[str, _core.Progress], str]
) -> Command[P]:
    """A command that is one call of the native module with its whole question."""

    def work(given: str, watch: Watch | None) -> Answer:
        task = Task(name, partial(call, _core.asked(name, given)))
        (found,) = scheduler.run([task], 1, watch)
        return Answer(name, {"sardonyx": _core.VERSION, **json.loads(found)})

    return Command(name, signature, work)


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, type):
        return getattr(value, "design_name", value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
