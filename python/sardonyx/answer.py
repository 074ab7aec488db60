"""Answers: what a command has found, its document, its table, its report.

An answer is shown by its command's module (``known``): ``tell``, ``groups``, ``report``, ``frame``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sardonyx._core import SardonyxError
from sardonyx.files import replaced_together
from sardonyx.known import COMMANDS

if TYPE_CHECKING:
    import pandas

#: The question that is answered now: the command and what it is asked, whole.
ASKED: ContextVar[dict[str, Any] | None] = ContextVar("ASKED", default=None)

#: Statuses beside 0.
CHECK_FAILED = 1
UNREADABLE = 2
NOTHING_SAID = 3


class Answered:
    """What answers have beside their documents: a status, notes, a table, a report.

    ``status`` is 1 where a check failed and 3 where nothing can be said, else 0; ``notes`` are what
    it warned of; ``files`` say what was written, ``errors`` what of several could not be read.
    ``shown`` is what ``tell`` and the report need and the document lacks.
    """

    command: str
    status: int = 0
    notes: Sequence[str] = ()
    files: list[str]
    errors: Sequence[str] = ()
    shown: Any = None
    #: Its origin, once it is saved.
    made: Any = None
    question: Mapping[str, Any] | None = None

    def _set(self, command: str, status: int, notes: Sequence[str], shown: Any) -> None:
        self.command, self.status, self.notes = command, status, list(notes)
        self.files, self.shown, self.question = [], shown, ASKED.get()

    def __repr__(self) -> str:
        held = ", ".join(self) if isinstance(self, dict) else f"{len(self)} rows"  # type: ignore[arg-type]
        return f"<{self.command}: status {self.status}; {held}>"

    def as_json(self) -> Any:
        """It as ``--json`` writes it."""
        return dict(self) if isinstance(self, dict) else list(self)  # type: ignore[call-overload]

    def tell(self, people: Any) -> None:
        """Print what people read of it on a Rich console."""
        module_of(self.command).tell(people, self)
        for line in self.files:
            people.print(line, soft_wrap=True)

    def table(self, width: int = 100, form: str = "text") -> str:
        """What the command line prints of it; as ``latex``, ``markdown`` or ``csv`` its tables."""
        if form == "text":
            return printed(self.tell, width)
        from sardonyx.draw import tables

        writers = {"latex": ".tex", "markdown": ".md", "csv": ".csv"}
        if form not in writers:
            raise SardonyxError(f"form {form!r}: is none of text, {', '.join(writers)}")
        return "\n".join(map(tables.FORMS[writers[form]], self._tables()))

    def save_table(self, path: str | os.PathLike[str]) -> list[str]:
        """Write its tables to a file that ends in .tex, .md or .csv, and give the files' names:
        CSV of the second and further tables is beside it, as in ``t-2.csv``.
        """
        from sardonyx.draw import tables

        return tables.write(self._tables(), Path(path))

    def _tables(self) -> list[Any]:
        from sardonyx.draw import tables

        return tables.taken(lambda taker: module_of(self.command).tell(taker, self))

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.table())}</pre>"

    def figures(self) -> list[Any]:
        """The figures of its report, each with ``plotly()``."""
        groups = self._having("groups").groups(self)
        return [each for group in groups for each in group.figures if hasattr(each, "views")]

    def save_figure(
        self, path: str | os.PathLike[str], width: str = "3.3in", font: str = "8pt"
    ) -> None:
        """Draw the figure that the file is named after for paper, as its name ends: .pdf or .svg.

        ``write-speedup.pdf`` is the figure of that key, ``wear-2.svg`` the second view of ``wear``.
        """
        from sardonyx.draw import still

        still.save(self.figures(), Path(path), width, font)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write its report, one HTML file: what is printed, if the command draws nothing."""
        module = module_of(self.command)
        if hasattr(module, "report"):
            module.report(self, path)
            return
        from sardonyx.report.printed import write

        write(self.command, lambda people: module.tell(people, self), Path(path))

    def to_pandas(self) -> pandas.DataFrame:
        """Its rows as a data frame, if it has such; needs pandas."""
        found: pandas.DataFrame = self._having("frame").frame(self)
        return found

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the document, its origin and its report into a folder, and give the report's path.

        All are there together, or none.
        """
        from sardonyx.runs import origin

        place, module = Path(folder), self._having("report")
        with replaced_together(place) as scratch:
            text = json.dumps(self.as_json(), indent=1, allow_nan=False) + "\n"
            (scratch / module.FILE).write_text(text, encoding="utf-8")
            made = origin.origin((), question=self.question)
            origin.save(made, scratch)
            self.made = origin.read(made)
            self.report(scratch / "report.html")
        return place / "report.html"

    def _having(self, what: str) -> ModuleType:
        """Its module, if that makes such a thing of it."""
        module = module_of(self.command)
        if not hasattr(module, what):
            raise SardonyxError(
                f"{self.command}: this answer has its table and its document, and no "
                f"{'figures' if what == 'groups' else what}"
            )
        return module


class Answer(Answered, dict[str, Any]):
    """What a command has found: its document, as ``--json`` writes it."""

    def __init__(
        self,
        command: str,
        document: Mapping[str, Any],
        status: int = 0,
        notes: Sequence[str] = (),
        shown: Any = None,
        errors: Sequence[str] = (),
    ) -> None:
        super().__init__(document)
        self._set(command, status, notes, shown)
        self.errors = errors

    def __getattr__(self, name: str) -> Any:
        """A part of the document: ``answer.runs``."""
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self)
            raise AttributeError(f"{self.command}: has no {name}; its parts are {known}") from None

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self})


class Listed(Answered, list[dict[str, Any]]):
    """What a command has found, a row each."""

    def __init__(self, command: str, rows: Iterable[Mapping[str, Any]], status: int = 0) -> None:
        super().__init__(map(dict, rows))
        self._set(command, status, (), None)


def printed(tell: Callable[[Any], None], width: int) -> str:
    """What something tells people, as a terminal of so many columns has it."""
    from rich.console import Console

    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        tell(console)
    return captured.get()


def module_of(command: str) -> ModuleType:
    """The module that answers a command."""
    return import_module(f"sardonyx.{COMMANDS[command].module}")
