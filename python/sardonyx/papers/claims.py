"""What the papers report, and one of their figures beside ours.

A paper's figures live in its ``claims.toml``, a row each: ``where`` in the paper, ``metric``, whose
``design`` (``workload``: of the programs alone), ``stat`` over the paper's workloads, ``value``
(shares as fractions of 1, ratios as plain numbers, other units in the metric's name), and ``kind``,
which says how the paper's words are to be judged: a cost of "only 11.7 %" is a limit (``at_most``),
not a change of that sign. Where a paper contradicts itself each of its statements is a row. How
ours is computed lives with each paper's reproduction; this module only loads, compares, judges and
writes down.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from sardonyx.runs.measures import HANGING, Aspect, assumed_by
from sardonyx.runs.results import Run

Statistic = Literal["min", "mean", "max", "value"]
#: What a claim's words say of the value: ours is no less, no more, within 15 % of it, on its side
#: of no change (``sign``, of a change with a figure), or beyond no change (``order``, of two
#: designs, without a figure).
Kind = Literal["at_least", "at_most", "within", "sign", "order"]
Unit = Literal["%", "x", "pp", ""]
#: A figure within this share of the paper's is near it.
WITHIN = 0.15
#: Where a claim stands that is a study's own: one design is no worse than another.
NO_PAPER = "no paper"


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure of a paper. Shares are fractions of 1."""

    paper: str
    where: str
    metric: str
    design: str
    stat: Statistic
    value: float
    kind: Kind

    @property
    def of_all(self) -> bool:
        """Whether it is a bound on every workload: the least above it, or the greatest below."""
        return (self.stat, self.kind) in (
            ("min", "order"),
            ("min", "at_least"),
            ("max", "at_most"),
        )

    @property
    def key(self) -> str:
        return f"{self.paper} {self.where} {self.metric} {self.design} {self.stat}"


def judge(kind: Kind, value: float, none: float, ours: float) -> bool:
    """Whether a figure of ours is what a claim's words say; ``none`` is the value of no change."""
    match kind:
        case "at_least":
            return ours >= value
        case "at_most":
            return ours <= value
        case "within":
            return ours == value if value == 0 else abs(ours / value - 1) <= WITHIN
        case "sign" | "order":
            return ours < none if value < none else ours > none


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim beside our figure.

    ``ours`` is ``None`` where the results cannot give it; ``reason`` then says what they lack.
    ``readings`` are our figures under other readings of the same claim. ``workloads`` are the
    values from which the statistic was taken, ``assumed`` the assumed parameters on which they
    rest.
    """

    claim: Claim
    ours: float | None
    unit: Unit
    note: str
    reason: str = ""
    readings: Mapping[str, float] = field(default_factory=dict)
    workloads: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    aspect: Aspect = "time"

    @property
    def hangs(self) -> bool:
        """Whether ours is a time or an energy that rests on something assumed."""
        return self.aspect in HANGING and bool(self.assumed)

    @property
    def none(self) -> float:
        """The value of no change."""
        return 1.0 if self.unit == "x" else 0.0

    @property
    def holds(self) -> bool | None:
        """Whether ours is what the paper's words say."""
        return self._judged(self.claim.kind)

    @property
    def sign(self) -> bool | None:
        """Whether ours is on the paper's side of no change; nothing of a limit, and of a figure
        that is no change.
        """
        if self.claim.kind in ("within", "at_most"):
            return None
        if self.claim.kind == "at_least" and (not self.unit or self.claim.value <= self.none):
            return None
        return self._judged("sign")

    @property
    def near(self) -> bool | None:
        """Whether ours is within 15 % of the paper's figure; an order, and a limit at no change,
        have none.
        """
        limit = self.claim.kind in ("at_least", "at_most") and self.claim.value == self.none
        return None if limit or self.claim.kind == "order" else self._judged("within")

    @property
    def verdict(self) -> str:
        """For people: whether the paper's words hold, and apart from it whether ours is near."""
        if self.holds is None:
            return ""
        near = {None: "", True: ", within 15 %", False: ", not within 15 %"}[self.near]
        if self.claim.kind == "within":
            near = ""
        if self.claim.where == NO_PAPER:
            return "no worse" if self.holds else "worse"
        words = "as the paper says" if self.holds else "not as the paper says"
        return words + near

    def _judged(self, kind: Kind) -> bool | None:
        return None if self.ours is None else judge(kind, self.claim.value, self.none, self.ours)

    @property
    def gap(self) -> float | None:
        """Ours minus the paper's, in the claim's own unit."""
        return None if self.ours is None else self.ours - self.claim.value

    @property
    def relative_gap(self) -> float | None:
        """Ours / the paper's - 1; ``None`` where the paper's is zero."""
        if self.ours is None or self.claim.value == 0:
            return None
        return self.ours / self.claim.value - 1

    @property
    def reported(self) -> str:
        """The paper's figure for people."""
        return written_paper(self.claim.kind, self.claim.value, self.unit)

    @property
    def reading_unit(self) -> Unit:
        """Other readings of a gain in percentage points are relative ones, in per cent."""
        return "%" if self.unit == "pp" else self.unit

    def to_document(self) -> dict[str, Any]:
        claim = asdict(self.claim)
        return {
            **{name: each for name, each in claim.items() if name != "value"},
            "reported": self.claim.value,
            "ours": self.ours,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
            "holds": self.holds,
            "sign": self.sign,
            "near": self.near,
            "unit": self.unit,
            "note": self.note,
            "reason": self.reason or None,
            "readings": dict(self.readings),
            "workloads": dict(self.workloads),
            "assumed": list(self.assumed),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """Our values for a claim: one a workload, and those of other readings of it.

    A value that the results cannot give is ``None``; ``needs`` says what would give all of them.
    ``runs`` are those behind the values, and ``aspect`` is on which of their parameters these rest.
    ``workloads`` could have given a value; by default as many as are in ``values``.
    """

    values: Mapping[str, float | None]
    unit: Unit
    note: str
    needs: str
    readings: Mapping[str, Mapping[str, float | None] | float | None] = field(default_factory=dict)
    aspect: Aspect = "time"
    runs: Sequence[Run] = ()
    workloads: int | None = None

    def beside(self, claim: Claim) -> ClaimRow:
        """The claim with its statistic over these values."""
        known = {name: value for name, value in self.values.items() if value is not None}
        readings = {}
        for name, values in self.readings.items():
            value = statistic(claim, values.values()) if isinstance(values, Mapping) else values
            if value is not None:
                readings[name] = value
        note = self.note
        workloads = len(self.values) if self.workloads is None else self.workloads
        if known and len(known) < workloads:
            note += f"; over {len(known)} of {workloads} workloads"
        if known and claim.of_all:
            none = 1.0 if self.unit == "x" else 0.0
            fails = [
                name
                for name, value in known.items()
                if not judge(claim.kind, claim.value, none, value)
            ]
            note += f"; does not hold for {', '.join(fails)}" if fails else "; holds for all"
        return ClaimRow(
            claim,
            statistic(claim, known.values()),
            self.unit,
            note,
            "" if known else f"these results lack {self.needs}",
            readings,
            known,
            tuple(assumed_by(self.runs, self.aspect)),
            self.aspect,
        )


def claim_rows(paper: str, find: Callable[[Claim], Found]) -> list[ClaimRow]:
    """Every claim of a paper, in its order, beside what ``find`` has for it."""
    return [find(claim).beside(claim) for claim in load_claims(paper)]


def statistic(claim: Claim, values: Iterable[float | None]) -> float | None:
    """The claim's statistic over the values that there are; ``None`` of none.

    A claim of a single value takes one; ``ValueError`` if there are more.
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    match claim.stat:
        case "min":
            return min(known)
        case "max":
            return max(known)
        case "mean":
            return math.fsum(known) / len(known)
        case "value":
            if len(known) > 1:
                raise ValueError(f"{claim.key}: a single value has no statistic over workloads")
            return known[0]


@cache
def _all_claims() -> tuple[Claim, ...]:
    papers = sorted(files("sardonyx.papers").iterdir(), key=lambda folder: folder.name)
    return tuple(
        Claim(paper=folder.name.replace("_", "-"), **row)
        for folder in papers
        if (file := folder.joinpath("claims.toml")).is_file()
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["claims"]
    )


def load_claims(paper: str | None = None) -> list[Claim]:
    """All claims, or one paper's (``esd``, ``sca``, ``easy-pm``, ``pageforge``, ``recam``)."""
    claims = [claim for claim in _all_claims() if paper in (None, claim.paper)]
    if not claims:
        known = ", ".join(sorted({claim.paper for claim in _all_claims()}))
        raise ValueError(f"no claims of a paper `{paper}`; there are those of {known}")
    return claims


def written_paper(kind: Kind, value: float, unit: Unit) -> str:
    """A paper's figure for people, with what its words make of it."""
    bound = {"at_least": "≥ ", "at_most": "≤ ", "order": "> "}.get(kind, "")
    return bound + written_claim(value, unit)


def written_claim(value: float | None, unit: Unit) -> str:
    """A claim's value for people: shares in per cent, gains of shares in percentage points."""
    if value is None:
        return "–"
    match unit:
        case "%":
            return f"{100 * value:.3g} %" if abs(value) < 0.01 else f"{100 * value:.1f} %"
        case "pp":
            return f"{100 * value:+.2f} pp"
        case "x":
            return f"{value:.2f}×"
        case _:
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


def written_gap(row: ClaimRow) -> tuple[str, str]:
    """The absolute and the relative gap for people."""
    gap, relative = row.gap, row.relative_gap
    if gap is None:
        return "–", "–"
    if row.unit in ("%", "pp"):
        absolute = f"{100 * gap:+.1f} pp" if abs(gap) >= 0.0005 else f"{100 * gap:+.2g} pp"
    else:
        absolute = f"{gap:+.2f}"
    return absolute, "–" if relative is None else f"{100 * relative:+.0f} %"
