"""What reproducing a paper is: runs to make, and what to say beside the paper once they are made.

A paper's file implements ``Reproduction`` and names its instance ``REPRODUCTION``. What stands
beside the results is kept in ``beside_paper.json``, so that ``sardonyx report`` can draw it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sardonyx.files import write_text
from sardonyx.papers.claims import ClaimRow
from sardonyx.papers.sample import Sample
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.points import Runs
from sardonyx.runs.results import ResultsError, read_json
from sardonyx.runs.scheduler import Watch
from sardonyx.values import MisfitError, read, written

if TYPE_CHECKING:
    from sardonyx.papers.sampling import Sampled


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asks of a reproduction; ``None`` leaves it to the paper.

    ``warmup`` is a number of requests or transactions, or a share of the run (``_core.warmup``).
    """

    traces: Sequence[str]
    machine: str
    overrides: Sequence[tuple[str, str]] = ()
    limit: int | None = None
    warmup: str | None = None
    copies: int | None = None
    quick: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a paper's table, of ours and of the paper; ``programs`` says what each program
    alone shows.
    """

    paper: str | None
    ours: str
    evidence: str
    counts: Mapping[str, int]
    programs: Mapping[str, str]

    @property
    def agrees(self) -> bool | None:
        return None if self.paper is None else self.ours == self.paper

    @property
    def beside(self) -> str:
        """What the paper says of it."""
        if self.agrees is None:
            return "not in the paper's table"
        return "as in the paper" if self.agrees else f"the paper: {self.paper}"

    def to_document(self) -> dict[str, Any]:
        return {
            "paper": self.paper,
            "ours": self.ours,
            "agrees": self.agrees,
            "evidence": self.evidence,
            "counts": dict(self.counts),
            "programs": dict(self.programs),
        }


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A table of the paper that is measured beside the runs, by row and column.

    ``head`` says what a row is, ``facts`` what else its JSON is to say.
    """

    key: str
    title: str
    head: str
    rows: Mapping[str, Mapping[str, Cell]]
    note: str
    facts: Mapping[str, Any]

    @property
    def has_paper(self) -> bool:
        """Whether the paper has any cell of it."""
        return any(cell.paper for row in self.rows.values() for cell in row.values())

    @property
    def columns(self) -> list[str]:
        """The headings of its columns."""
        return [name.replace("_", "-") for name in next(iter(self.rows.values()))]

    def to_document(self) -> dict[str, Any]:
        rows = [
            {self.head: name, "in_the_paper": any(cell.paper for cell in row.values())}
            | {column: cell.to_document() for column, cell in row.items()}
            for name, row in self.rows.items()
        ]
        return {**self.facts, "note": self.note, "rows": rows}


@dataclass(frozen=True, slots=True)
class BesidePaper:
    """Claims, a sentence on what stood in for the paper's programs, and its tables.

    ``verdict`` says what holds, what does not, and what it depends on, a sentence or two each.
    """

    claims: tuple[ClaimRow, ...] = ()
    note: str = ""
    exhibits: tuple[Exhibit, ...] = ()
    verdict: tuple[str, ...] = ()
    sample: Sample | None = None

    def save(self, directory: Path) -> None:
        """Write it, complete or not at all."""
        write_text(directory / NAME, json.dumps(written(self), indent=1) + "\n")

    @staticmethod
    def load(directory: Path) -> BesidePaper:
        """What was saved; nothing where there is none. ``ResultsError`` says what is wrong."""
        path = directory / NAME
        if not path.exists():
            return BesidePaper()
        try:
            return read(BesidePaper, read_json(path))
        except MisfitError as error:
            raise ResultsError.of(error, str(path)) from error


NAME = "beside_paper.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """The runs of a reproduction, and what follows from them.

    ``note`` says what stands in for the paper's programs, ``facts`` what else the JSON is to say.
    ``measure`` makes the tables that follow from the runs or are measured beside them. ``verdict``
    is computed from the runs and the claims; what it says comes first wherever the reproduction is
    shown.
    """

    runs: Runs
    note: str
    claims: Callable[[Comparison], list[ClaimRow]]
    measure: Callable[[Comparison, Watch | None], tuple[Exhibit, ...]] = lambda *_: ()
    verdict: Callable[[Comparison, Sequence[ClaimRow]], tuple[str, ...]] = lambda *_: ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    #: The runs over what the paper leaves open.
    sampled: Sampled | None = None


class Reproduction(Protocol):
    """A paper that can be reproduced, and the machine that is its.

    ``takes`` are the wishes that do something beside those that all take; ``instead`` says what to
    give for others.
    """

    name: str
    machine: str
    takes: tuple[str, ...]
    instead: str

    def plan(self, asked: Asked) -> Plan:
        """What to run; an error says which wish the paper cannot have."""


def document(paper: str, plan: Plan, beside: BesidePaper, comparison: Comparison) -> dict[str, Any]:
    """The whole reproduction as JSON."""
    return {
        "paper": paper,
        "verdict": list(beside.verdict),
        "stand_ins": beside.note,
        **plan.facts,
        **{exhibit.key: exhibit.to_document() for exhibit in beside.exhibits},
        "claims": [row.to_document() for row in beside.claims],
        **({"sample": asdict(beside.sample)} if beside.sample else {}),
        "results": comparison.results.to_document(),
    }
