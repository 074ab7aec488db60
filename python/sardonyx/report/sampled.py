"""A reproduction's sample: a forest of all claims, then what decides them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sardonyx.draw.figure import GREY, Cell, Figure, Table, View, label
from sardonyx.papers.claims import written_paper
from sardonyx.papers.sample import Sample, SampledClaim
from sardonyx.report.claims import OURS, PAPERS, markers, rows_of
from sardonyx.runs.sensitivity import Count

POINT = GREY
#: This many choices are drawn, those that explain most.
CHOICES = 15


def figures(sample: Sample | None) -> list[Figure]:
    """A forest of ratios, one of shares, and the choices by what they explain."""
    if sample is None:
        return []
    made = []
    for key, title, units in (
        ("sample-ratios", "Ratios over the sample", ("x",)),
        ("sample-shares", "Shares and reductions over the sample", ("%", "pp")),
    ):
        chosen = [claim for claim in sample.claims if claim.unit in units and claim.cells]
        if chosen:
            made.append(_forest(key, title, sample, chosen))
    if any(claim.deciding for claim in sample.claims):
        made.append(_deciding(sample))
    return made


def _forest(key: str, title: str, sample: Sample, claims: Sequence[SampledClaim]) -> Figure:
    ratios = claims[0].unit == "x"
    names = [label(f"{_name(claim)}{_held(claim)}") for claim in claims]
    unit = "x" if ratios else "%"
    spans = {
        "type": "scatter",
        "mode": "lines",
        "name": "middle 90 % of cells",
        "x": [x for claim in claims for x in (claim.least, claim.most, None)],
        "y": [y for name in names for y in (name, name, None)],
        "line": {"color": OURS, "width": 5},
        "opacity": 0.45,
        "hoverinfo": "skip",
    }
    dots = markers(
        names,
        unit,
        (
            ("the paper's", [claim.paper for claim in claims], PAPERS, "diamond-open"),
            ("median of cells", [claim.median for claim in claims], OURS, "circle"),
            ("the plain runs", [claim.point for claim in claims], POINT, "line-ns-open"),
        ),
    )
    ends = [end for claim in claims for end in (claim.least, claim.most, claim.paper, claim.point)]
    known = [end for end in ends if end is not None]
    none = 1.0 if ratios else 0.0
    xaxis: dict[str, Any] = {"automargin": True, "zeroline": not ratios}
    if ratios and min(known) > 0:
        low, high = 0.85 * min(none, *known), 1.2 * max(none, *known)
        xaxis |= {"type": "log", "dtick": "D2", "range": [math.log10(low), math.log10(high)]}
    xaxis |= {"ticksuffix": "×", "tickformat": ",~f"} if ratios else {"tickformat": ".0%"}
    xaxis["title"] = {"text": "×, 1 is no change" if ratios else "share"}
    even = {"type": "line", "x0": none, "x1": none, "y0": 0, "y1": 1, "yref": "paper"}
    line = {"color": GREY, "dash": "dot"}
    shape = rows_of(names, xaxis) | {"shapes": [{**even, "line": line}]}
    cells: list[list[Cell]] = [
        [
            _name(claim), written_paper(claim.kind, claim.paper, claim.unit), claim.median,
            claim.least, claim.most, _written(claim.holds), _written(claim.sign),
            _written(claim.near), _written(claim.pairs),
            ", ".join(f"{each.workload} {each.holds}/{each.cells}" for each in claim.workloads),
            claim.decided,
        ]
        for claim in claims
    ]  # fmt: skip
    return Figure(
        key,
        title,
        "SAMPLE",
        f"Each row is one claim over {sample.cells} cells: the bar holds the middle 90 % of them, "
        "the dot is their median, the diamond what the paper reports. Behind its name: in how many "
        "of the cells that can say ours is as the paper says.",
        "A cell is a machine with one value of each choice that the paper leaves open, on which "
        "every workload runs. Where a bar crosses the dotted line, the choices decide the claim's "
        "direction. As the paper says: what its words say, so a limit is judged by its bound. "
        "Counts have 95 % intervals in per cent: over cells, and of one workload over other "
        "workloads and cells.",
        [View("", [spans, *dots], shape)],
        Table(
            (
                ("claim", ""), ("paper", ""), ("median", unit), ("5 %", unit), ("95 %", unit),
                ("as the paper says", ""), ("its sign", ""), ("within 15 %", ""),
                ("on one workload", ""), ("by workload", ""), ("decided by", ""),
            ),
            cells,
        ),
    )  # fmt: skip


def _deciding(sample: Sample) -> Figure:
    """The choices by the share of variance that they explain, on the mean of all claims."""
    total: dict[str, float] = {}
    most: dict[str, tuple[float, str]] = {}
    claims = [claim for claim in sample.claims if claim.deciding]
    for claim in claims:
        for share in claim.deciding:
            if len(share.choices) > 1:
                continue
            name = share.choices[0]
            total[name] = total.get(name, 0.0) + share.value / len(claims)
            most[name] = max(most.get(name, (0.0, "")), (share.value, _name(claim)))
    ranked = sorted(total, key=lambda name: -total[name])[:CHOICES]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [total[name] for name in ranked],
        "y": ranked,
        "marker": {"color": OURS},
        "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
    }
    shape: dict[str, Any] = {
        "height": 110 + 24 * len(ranked),
        "margin": {"l": 64, "r": 36, "t": 20, "b": 48},
        "xaxis": {
            "tickformat": ".0%",
            "title": {"text": "share of a claim's variance, mean of all claims"},
        },
        "yaxis": {"categoryorder": "array", "categoryarray": ranked[::-1], "automargin": True},
    }
    choices = {choice.name: choice for choice in sample.choices}
    cells: list[list[Cell]] = [
        [
            name, total[name], most[name][0], most[name][1], choices[name].value,
            choices[name].values, choices[name].why,
        ]
        for name in ranked
    ]  # fmt: skip
    return Figure(
        "sample-deciding",
        "Which choices decide",
        "SAMPLE",
        "The share of the variance of our figures that each choice explains alone, on the mean of "
        "the claims.",
        "First-order Sobol' indices over the sample's cells; what is missing to 100 % comes of "
        "choices together.",
        [View("", [bars], shape)],
        Table(
            (
                ("choice", ""), ("mean", "%"), ("most", "%"), ("of", ""), ("usual", ""),
                ("may be", ""), ("why", ""),
            ),
            cells,
        ),
    )  # fmt: skip


def _held(claim: SampledClaim) -> str:
    return "" if claim.holds is None else f" · {claim.holds.number} of {claim.holds.of}"


def _written(count: Count | None) -> str | None:
    return None if count is None else count.written


def _name(claim: SampledClaim) -> str:
    whose = "" if claim.design == "workload" else f"{claim.design} "
    return f"{whose}{claim.title} · {claim.where}"
