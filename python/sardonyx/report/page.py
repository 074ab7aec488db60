"""The page around the figures: header, navigation, tables, assumptions, parameters.

Everything is in the one file: Plotly's script, the style and the data. A content security policy
in its head keeps it from ever fetching anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from pydantic import JsonValue

from sardonyx.papers.claims import ClaimRow, written_claim, written_gap
from sardonyx.papers.reproduction import BesidePaper, Exhibit
from sardonyx.papers.reproduction import Cell as PaperCell
from sardonyx.report.figure import Cell, Figure, Missing, design_colour
from sardonyx.report.workloads import summary as workload_summary
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import BASELINE, MEASURES, Measure, assumed_by, plain, written
from sardonyx.runs.results import Machine, Results, Trace

#: So many assumed parameters are named in place; more are folded away.
FEW = 4


@dataclass(frozen=True, slots=True)
class Group:
    """A section of the report."""

    key: str
    title: str
    figures: Sequence[Figure | Missing]
    #: What stands before the figures, as HTML.
    inner: str = ""


def render(comparison: Comparison, groups: Sequence[Group], beside: BesidePaper) -> str:
    """The whole page."""
    results = comparison.results
    sections = [_summary(comparison)]
    for group in groups:
        sections.append(
            _section(group.key, group.title, group.inner + _figures(group, results.machine))
        )
    sections += [_variants(results), _assumptions(results), _parameters(results)]
    variants = [("#variants", "Variants")] if any(run.variant for run in results.runs) else []
    return _page(
        "Simulation report",
        f"{', '.join(results.designs)} on {results.machine.name}",
        results.machine.source,
        [
            ("machine", results.machine.name),
            ("designs", ", ".join(results.designs)),
            *workload_summary(results.traces),
            ("Sardonyx", results.version),
        ],
        beside.note,
        _navigation(
            groups,
            [("#summary", "Summary")],
            [*variants, ("#assumed", "Assumptions"), ("#parameters", "Parameters")],
        ),
        sections,
        groups,
    )


def render_traces(traces: Sequence[Trace], groups: Sequence[Group], version: str) -> str:
    """A page about traces alone."""
    names = ", ".join(trace.name for trace in traces)
    return _page(
        "Trace report",
        names,
        "What the trace holds, counted in its bytes; it rests on no machine.",
        [("trace", names), *workload_summary(traces), ("Sardonyx", version)],
        "",
        _navigation(groups, [], []),
        [_section(group.key, group.title, _figures(group)) for group in groups],
        groups,
    )


def _figures(group: Group, machine: Machine | None = None) -> str:
    return "".join(
        _figure(f, machine) if isinstance(f, Figure) else _missing(f) for f in group.figures
    )


def _page(
    heading: str,
    subject: str,
    source: str,
    facts: Iterable[tuple[str, str]],
    note: str,
    navigation: str,
    sections: Sequence[str],
    groups: Sequence[Group],
) -> str:
    plots = {
        figure.key: {
            "views": [{"data": v.data, "layout": v.layout} for v in figure.views],
        }
        for group in groups
        for figure in group.figures
        if isinstance(figure, Figure)
    }
    return Template(_resource("report.html")).substitute(
        title=escape(f"Sardonyx: {subject}"),
        heading=escape(heading),
        style=_resource("report.css"),
        facts="".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts
        ),
        note=f'<p class="note">{escape(note)}</p>' if note else "",
        source=escape(source),
        navigation=navigation,
        sections="\n".join(sections),
        plots=_embedded(plots),
        plotly=_plotly(),
        script=_resource("report.js"),
    )


def _resource(name: str) -> str:
    return files("sardonyx").joinpath(f"report/{name}").read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script.replace("</script", "<\\/script")


def _embedded(value: object) -> str:
    """JSON that cannot end the script element that holds it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _section(key: str, title: str, inner: str) -> str:
    return f'<section id="{key}"><h2>{escape(title)}</h2>{inner}</section>'


def _navigation(
    groups: Sequence[Group],
    before: Iterable[tuple[str, str]],
    after: Iterable[tuple[str, str]],
) -> str:
    parts = [f'<a href="{to}">{escape(title)}</a>' for to, title in before]
    for group in groups:
        parts.append(f'<a href="#{group.key}">{escape(group.title)}</a>')
        for figure in group.figures:
            off = ' class="off"' if isinstance(figure, Missing) else ""
            parts.append(
                f'<a class="sub" href="#{figure.key}"><span{off}>{escape(figure.title)}</span></a>'
            )
    parts += [f'<a href="{to}">{escape(title)}</a>' for to, title in after]
    return "".join(parts)


# ---- summary


def _summary(comparison: Comparison) -> str:
    designs = [d for d in comparison.designs if d != BASELINE]
    if BASELINE not in comparison.designs or not designs:
        text = "A summary needs a `baseline` run and at least one other design."
        return _section("summary", "Summary", f'<p class="missing">{escape(text)}</p>')
    measures = list(MEASURES.values())
    head = "".join(_heading(m) for m in measures)
    means = {d: [comparison.mean(m, d) for m in measures] for d in designs}
    best = [_best([means[d][i] for d in designs], m) for i, m in enumerate(measures)]
    body = "".join(
        f'<tr><th scope="row">{_swatch(d, comparison)}{escape(d)}</th>'
        + "".join(
            f'<td class="{"best" if len(designs) > 1 and v is not None and v == best[i] else ""}">'
            f"{_mark(comparison, d, m)}{written(v, m.unit)}</td>"
            for i, (v, m) in enumerate(zip(means[d], measures, strict=True))
        )
        + "</tr>"
        for d in designs
    )
    count = len(comparison.workloads)
    legend = (
        f"Over {count} {'workload' if count == 1 else 'workloads'}, each beside the baseline on "
        "the same trace. "
        "Speed-ups, IPC, energy and p99 are geometric means, shares arithmetic ones; IPC and "
        "energy are ratios to the baseline. Best in bold. † rests on assumed parameters."
    )
    per_trace = "".join(
        f'<tr class="{"first" if d == designs[0] else ""}"><th scope="row">'
        f"{escape(w) if d == designs[0] else ''}</th>"
        f'<td class="name">{_swatch(d, comparison)}{escape(d)}</td>'
        + "".join(
            f"<td>{written(comparison.value(m.of, w, d, BASELINE), m.unit)}</td>" for m in measures
        )
        + "</tr>"
        for w in comparison.workloads
        for d in designs
        if comparison.run(w, d)
    )
    return _section(
        "summary",
        "Summary",
        f'<div class="scroll"><table class="summary"><thead><tr><th>design</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div><p class='reading'>{escape(legend)}</p>"
        "<details open><summary>Every trace</summary>"
        '<div class="scroll tall"><table data-name="summary"><thead><tr><th>workload</th>'
        f'<th class="name">design</th>{head}</tr></thead><tbody>{per_trace}</tbody></table></div>'
        "</details>",
    )


def _heading(measure: Measure) -> str:
    arrow = "higher is better" if measure.higher_is_better else "lower is better"
    sign = "↑" if measure.higher_is_better else "↓"
    return (
        f'<th title="{arrow}">{_unbroken(measure.title)}&nbsp;<span class="sign">{sign}</span></th>'
    )


def _unbroken(text: str) -> str:
    """With hyphens at which no line breaks."""
    return escape(text).replace("-", "\u2011")


def _best(values: Sequence[float | None], measure: Measure) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return max(known) if measure.higher_is_better else min(known)


def _mark(comparison: Comparison, design: str, measure: Measure) -> str:
    names = assumed_by(comparison.runs(BASELINE, design), measure.aspect)
    return _dagger(names)


def _dagger(names: Sequence[str]) -> str:
    if not names:
        return ""
    which = f": {', '.join(names)}" if len(names) <= FEW else ""
    listed = escape(f"Rests on {len(names)} assumed parameters{which}", quote=True)
    return f'<a class="dagger" href="#assumed" title="{listed}">†</a>'


def _swatch(design: str, comparison: Comparison) -> str:
    colour = design_colour(design, comparison.designs)
    return f'<i class="swatch" style="background:{colour}"></i>'


# ---- figures


def _figure(figure: Figure, machine: Machine | None) -> str:
    chooser = ""
    if len(figure.views) > 1:
        options = "".join(
            f'<option value="{i}">{escape(v.name)}</option>' for i, v in enumerate(figure.views)
        )
        chooser = (
            f'<label class="choose">{escape(figure.choose)} '
            f'<select data-for="{figure.key}" autocomplete="off">{options}</select></label>'
        )
    assumed = ""
    if figure.assumed:
        values = {a.parameter: a.value for a in machine.assumed} if machine else {}
        listed = ", ".join(
            f"<code>{escape(name)}{_equals(values.get(name))}</code>" for name in figure.assumed
        )
        if len(figure.assumed) <= FEW:
            assumed = f'<p class="rests">† rests on assumed parameters: {listed}</p>'
        else:
            count = len(figure.assumed)
            assumed = (
                f'<details class="rests"><summary>† rests on {count} assumed parameters</summary>'
                f"<p>{listed}</p></details>"
            )
    height = figure.views[0].layout["height"]
    return (
        f'<article id="{figure.key}" class="figure"><header><h3>{escape(figure.title)}'
        f'{_dagger(figure.assumed)}</h3><span class="cf">cf. {escape(figure.cf)}</span>'
        f"{chooser}</header>"
        f"<p>{escape(figure.shows)}</p>"
        f'<div class="plot" data-plot="{figure.key}" style="min-height:{height}px" role="img" '
        f'aria-label="{escape(figure.title, quote=True)}; its figures are in the table below">'
        "</div>"
        f'<p class="reading">{escape(figure.reading)}</p>{assumed}'
        f"<details><summary>Figures as a table</summary>{_table(figure)}</details></article>"
    )


def _equals(value: JsonValue) -> str:
    return "" if value is None else f" = {escape(str(value))}"


def _missing(figure: Missing) -> str:
    return (
        f'<article id="{figure.key}" class="figure empty"><header><h3>{escape(figure.title)}</h3>'
        f'<span class="cf">cf. {escape(figure.cf)}</span></header>'
        f'<p class="missing">{escape(figure.reason)}</p></article>'
    )


def _table(figure: Figure) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name, _ in figure.table.columns)
    units = [unit for _, unit in figure.table.columns]
    body = "".join(
        "<tr>" + "".join(_cell(c, u) for c, u in zip(row, units, strict=True)) + "</tr>"
        for row in figure.table.rows
    )
    return _framed(head, body, f' data-name="{figure.key}"')


def _cell(value: Cell, unit: str) -> str:
    if isinstance(value, str):
        return f'<th scope="row">{escape(value)}</th>'
    if value is None:
        return '<td data-v="">–</td>'
    shown = (
        f"{100 * value:.3g} %" if unit == "%" and 0 < abs(value) < 0.01 else written(value, unit)
    )
    return f'<td data-v="{value!r}">{shown}</td>'


# ---- claims, assumptions, parameters


def claims(rows: Sequence[ClaimRow]) -> str:
    body = []
    for row in rows:
        gap, relative = written_gap(row)
        claim = row.claim
        ours = (
            f"<strong>{written_claim(row.ours, row.unit)}</strong>{_dagger(row.assumed)}"
            if row.ours is not None
            else '<span class="missing">none</span>'
        )
        readings = "".join(
            f"<li>{escape(name)}: {written_claim(value, row.reading_unit)}</li>"
            for name, value in row.readings.items()
        )
        note = escape(row.reason or row.note) + (f"<ul>{readings}</ul>" if readings else "")
        body.append(
            f'<tr><td class="name">{escape(claim.where)}</td>'
            f'<td class="name">{escape(claim.metric.replace("_", " "))}'
            f"<small>{escape(claim.design)}, {escape(claim.statistic)}</small></td>"
            f"<td>{escape(row.reported)}</td><td>{ours}</td>"
            f"<td>{gap}</td><td>{relative}</td>"
            f'<td class="name why">{note}</td></tr>'
        )
    heads = ("where", "what", "paper", "ours", "gap", "relative", "definition")
    left = ("where", "what", "definition")
    head = "".join(f'<th class="{"name" if h in left else ""}">{h}</th>' for h in heads)
    found = sum(row.ours is not None for row in rows)
    return (
        f"<p>{found} of {len(rows)} figures of the paper have one of ours beside them. Gap "
        "is ours minus the paper's (pp: percentage points); relative is ours / the paper's - 1.</p>"
        + _framed(head, "".join(body), ' data-name="claims" class="claims"')
    )


def exhibit(table: Exhibit) -> str:
    """A table of the paper as measured: each cell, what it rests on, and the paper's."""
    head = "".join(f'<th class="name">{escape(h)}</th>' for h in (table.head, *table.columns))
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_exhibited, row.values()))}</tr>'
        for name, row in table.rows.items()
    )
    framed = _framed(head, body, f' data-name="{anchor(table)}" class="claims"', "scroll")
    return f"<p>{escape(table.note)}</p>{framed}"


def anchor(table: Exhibit) -> str:
    """The id of its section."""
    return table.key.replace("_", "-")


def _exhibited(cell: PaperCell) -> str:
    same = sum(value == cell.ours for value in cell.programs.values())
    each = f"the same in {same} of {len(cell.programs)} programs"
    return (
        f'<td class="name why"><strong>{escape(cell.ours)}</strong> ({escape(cell.beside)})'
        f"<small>{escape(cell.evidence)}; {each}</small></td>"
    )


_VARIANT_METRICS = (
    ("writes removed", "write_reduction", "%"),
    ("mean write", "mean_write_latency_ns", "ns"),
    ("mean read", "mean_read_latency_ns", "ns"),
    ("IPC", "ipc", ""),
    ("energy (nJ)", "energy_nj", ""),
    ("EFIT hits", "efit_hit_rate", "%"),
    ("AMT hits", "amt_hit_rate", "%"),
)


def _variants(results: Results) -> str:
    """Every run that changes a setting of the machine, with its main figures; nothing without
    one.
    """
    runs = [run for run in results.runs if run.variant]
    if not runs:
        return ""
    shown = [
        column
        for column in _VARIANT_METRICS
        if any(run.metric(column[1]) is not None for run in runs)
    ]
    heads = "".join(f'<th class="name">{h}</th>' for h in ("trace", "design", "setting"))
    heads += "".join(f"<th>{name}</th>" for name, _, _ in shown)
    body = "".join(
        f'<tr><th scope="row">{escape(run.trace)}</th><td class="name">{escape(run.design)}</td>'
        f'<td class="name"><code>{escape(run.variant_label)}</code></td>'
        + "".join(_cell(run.metric(metric), unit) for _, metric, unit in shown)
        + "</tr>"
        for run in runs
    )
    return _section(
        "variants",
        "Variants",
        "<p>Runs that change a setting of the machine; no other part of this report but the "
        "sizes of caches and the readings of claims counts them.</p>"
        f"<details><summary>{len(runs)} runs</summary>"
        + _framed(heads, body, ' data-name="variants"')
        + "</details>",
    )


def _assumptions(results: Results) -> str:
    used = {name for run in results.runs for name in run.assumed}
    listed = list(results.machine.assumed)
    unknown = sorted(used - {a.parameter for a in listed})
    rows: list[tuple[str, str, str, str]] = [
        (a.parameter, _value(a.value), a.why, "yes" if a.parameter in used else "no")
        for a in listed
    ]
    rows += [(name, "–", "the machine gives no reason", "yes") for name in unknown]
    if not rows:
        inner = "<p>No parameter of this machine is assumed: each has a source.</p>"
    else:
        inner = (
            "<p>No source gives these values. Figures that rest on them carry a †; settle them "
            "with <code>--set parameter=value</code>.</p>"
            + _plain_table(("parameter", "value", "why", "used here"), rows)
        )
    return _section("assumed", "Assumptions", inner)


def _parameters(results: Results) -> str:
    assumed = {a.parameter for a in results.machine.assumed}
    rows = [
        (name + ("†" if name in assumed else ""), _value(value))
        for name, value in sorted(results.machine.parameters.items())
    ]
    inner = (
        _plain_table(("parameter", "value"), rows)
        if rows
        else "<p>These results do not list the machine's parameters.</p>"
    )
    return _section(
        "parameters",
        "Parameters",
        f"<details open><summary>Machine {escape(results.machine.name)}</summary>{inner}</details>",
    )


def _framed(head: str, body: str, attributes: str = "", scroll: str = "scroll tall") -> str:
    return (
        f'<div class="{scroll}"><table{attributes}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th class="name">{escape(h)}</th>' for h in heads)
    body = "".join(
        f'<tr><th scope="row"><code>{escape(row[0])}</code></th>'
        + "".join(f'<td class="name">{escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return _framed(head, body)


def _value(value: JsonValue) -> str:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return plain(value)
    return value if isinstance(value, str) else json.dumps(value)
