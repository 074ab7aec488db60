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
from typing import Any

from pydantic import JsonValue

from sardonyx.papers.claims import ClaimRow, written_claim, written_gap
from sardonyx.papers.reproduction import BesidePaper, Exhibit
from sardonyx.papers.reproduction import Cell as PaperCell
from sardonyx.report.figure import Cell, Figure, Head, Missing, design_colour
from sardonyx.report.workloads import summary as workload_summary
from sardonyx.runs import stores, tailbench
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import (
    BASELINE,
    HANGING,
    MEASURES,
    Measure,
    Two,
    assumed_by,
    mean,
    plain,
    written,
)
from sardonyx.runs.programs import ACCESSES, BYTES, runtime_ratio, traffic_ratio
from sardonyx.runs.results import Machine, Results, Trace
from sardonyx.runs.sensitivity import MEAN
from sardonyx.runs.worth import warnings

#: What programs stand beside.
PLAIN = "no-encryption"
#: Designs that have no summary of writes and energy.
OF_THEIR_OWN = {*stores.DESIGNS, *tailbench.DESIGNS}
#: So many assumed parameters are named in place; more are folded away.
FEW = 4


@dataclass(frozen=True, slots=True)
class Group:
    """A section of the report."""

    key: str
    title: str
    figures: Sequence[Figure | Missing] = ()
    #: What stands before the figures, as HTML.
    inner: str = ""


def render(comparison: Comparison, groups: Sequence[Group], beside: BesidePaper) -> str:
    """The whole page."""
    results = comparison.results
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
        [
            *([] if set(results.designs) <= OF_THEIR_OWN else _summaries(comparison)),
            *groups,
            *_variants(results),
            _assumptions(results),
            _parameters(results),
        ],
        [*beside.verdict, beside.note, *_warned(results.traces)],
        results.machine,
    )


def render_traces(traces: Sequence[Trace], groups: Sequence[Group], version: str) -> str:
    """A page about traces alone."""
    names = ", ".join(trace.name for trace in traces)
    return _page(
        "Trace report",
        names,
        "What the trace holds, counted in its bytes; it rests on no machine.",
        [("trace", names), *workload_summary(traces), ("Sardonyx", version)],
        groups,
        _warned(traces),
    )


def _warned(traces: Sequence[Trace]) -> list[str]:
    return [f"Warning: {line}." for line in warnings(traces)]


def render_savings(
    path: str, facts: Sequence[tuple[str, str]], groups: Sequence[Group], version: str
) -> str:
    """A page about what deduplication would save."""
    source = "What is there, counted in its bytes; what two designs would take to store it."
    return _page("Savings", path, source, [*facts, ("Sardonyx", version)], groups)


def render_sweep(subject: str, facts: Sequence[tuple[str, str]], groups: Sequence[Group]) -> str:
    """A page about a sweep."""
    return _page(
        "Sweep report", subject, "Points of a sweep, as its shards have them.", facts, groups
    )


def render_merge(answer: dict[str, Any], groups: Sequence[Group]) -> str:
    """A page about a merge."""
    machines = [str(machine["name"]) for machine in answer["machines"]]
    shown = ", ".join(machines[:FEW]) + (
        f" and {len(machines) - FEW} more" if machines[FEW:] else ""
    )
    pages = sum(machine["pages"] for machine in answer["machines"])
    return _page(
        "Merge report",
        shown,
        "Same-page merging over page images, pass by pass.",
        [
            ("machines", shown),
            ("pages", f"{pages:,}"),
            ("snapshots", f"{answer['snapshots']}"),
            ("kernel", str(answer["kernel"])),
            ("Sardonyx", str(answer["sardonyx"])),
        ],
        groups,
    )


def _page(
    heading: str,
    subject: str,
    source: str,
    facts: Iterable[tuple[str, str]],
    groups: Sequence[Group],
    notes: Sequence[str] = (),
    machine: Machine | None = None,
) -> str:
    plots = {
        figure.key: {"views": [{"data": v.data, "layout": v.layout} for v in figure.views]}
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
        note="".join(f'<p class="note">{escape(note)}</p>' for note in notes if note),
        source=escape(source),
        navigation="".join(map(_links, groups)),
        sections="\n".join(_section(group, machine) for group in groups),
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


def _section(group: Group, machine: Machine | None) -> str:
    drawn = "".join(
        _figure(f, machine) if isinstance(f, Figure) else _missing(f) for f in group.figures
    )
    return f'<section id="{group.key}"><h2>{escape(group.title)}</h2>{group.inner}{drawn}</section>'


def _links(group: Group) -> str:
    links = f'<a href="#{group.key}">{escape(group.title)}</a>'
    for figure in group.figures:
        off = ' class="off"' if isinstance(figure, Missing) else ""
        links += f'<a class="sub" href="#{figure.key}"><span{off}>{escape(figure.title)}</span></a>'
    return links


# ---- tables


def _table(
    heads: Iterable[str], rows: Iterable[str], attributes: str = "", scroll: str = "scroll tall"
) -> str:
    """A table of headings and rows that are HTML already."""
    return (
        f'<div class="{scroll}"><table{attributes}><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(name: str, cells: Iterable[str], attributes: str = "") -> str:
    """A row of a name and cells that are HTML already."""
    return f'<tr{attributes}><th scope="row">{name}</th>{"".join(cells)}</tr>'


def _words(text: str) -> str:
    return f'<td class="name">{escape(text)}</td>'


def _heads_of_words(*texts: str) -> list[str]:
    return [f'<th class="name">{escape(text)}</th>' for text in texts]


def _cell(value: Cell, unit: str) -> str:
    if isinstance(value, str):
        return f'<th scope="row">{escape(value)}</th>'
    if value is None:
        return '<td data-v="">–</td>'
    shown = (
        f"{100 * value:.3g} %" if unit == "%" and 0 < abs(value) < 0.01 else written(value, unit)
    )
    return f'<td data-v="{value!r}">{shown}</td>'


# ---- summary


def _summaries(comparison: Comparison) -> list[Group]:
    if comparison.beside_baseline or not comparison.programs.names:
        return [_summary(comparison)]
    return _summary_of_programs(comparison)


def _summary_of_programs(comparison: Comparison) -> list[Group]:
    """Programs stand beside `no-encryption`, where SCA has no `baseline`; none without it."""
    programs = comparison.programs
    if PLAIN not in programs.designs or len(programs.designs) < 2:
        return []
    cores = programs.cores[0]
    columns = {
        "runtime": runtime_ratio,
        "bytes written": traffic_ratio(BYTES),
        "accesses written": traffic_ratio(ACCESSES),
    }

    def cell(of: Two, design: str) -> str:
        a, b = ({"design": name, "cores": cores} for name in (design, PLAIN))
        values = programs.each(of, a, b).values()
        return f"<td>{written(mean(values, 'arithmetic'), 'x')}</td>"

    rows = [
        _row(_swatch(d, comparison) + escape(d), [cell(of, d) for of in columns.values()])
        for d in programs.designs
        if d != PLAIN
    ]
    heads = [f"<th>{name}</th>" for name in ("design", *columns)]
    legend = (
        f"A transaction beside the same program's under {PLAIN}, on {cores} "
        f"{'core' if cores == 1 else 'cores'}: arithmetic means over "
        f"{len(programs.names)} programs. Lower is better."
    )
    table = _table(heads, rows, ' class="summary"', "scroll")
    inner = f"{table}<p class='reading'>{escape(legend)}</p>"
    return [Group("summary", "Summary", inner=inner)]


def _summary(comparison: Comparison) -> Group:
    designs = comparison.beside_baseline
    if not designs:
        text = "A summary needs a `baseline` run and at least one other design."
        return Group("summary", "Summary", inner=f'<p class="missing">{escape(text)}</p>')
    measures = list(MEASURES.values())
    heads = [_heading(m) for m in measures]
    means = {d: [comparison.mean(m, d) for m in measures] for d in designs}
    found = comparison.results.sensitivity
    several = MEAN if len(comparison.workloads) > 1 else comparison.workloads[0]
    rests = {
        (d, m.key): assumed_by(comparison.runs(BASELINE, d), m.aspect)
        if m.aspect in HANGING and (found is None or found.flipped(m.key, d, BASELINE, several))
        else []
        for d in designs
        for m in measures
    }
    best = [_best([means[d][i] for d in designs], m) for i, m in enumerate(measures)]
    rows = [
        _row(
            _swatch(d, comparison) + escape(d),
            (
                f'<td class="{"best" if len(designs) > 1 and v is not None and v == top else ""}">'
                f"{_dagger(rests[d, m.key])}{written(v, m.unit)}</td>"
                for v, m, top in zip(means[d], measures, best, strict=True)
            ),
        )
        for d in designs
    ]
    count = len(comparison.workloads)
    legend = (
        f"Over {count} {'workload' if count == 1 else 'workloads'}, each beside the baseline on "
        "the same trace. "
        "Speed-ups, IPC, energy and p99 are geometric means, shares arithmetic ones; IPC and "
        "energy are ratios to the baseline. Best in bold. "
    ) + (
        "† is a time or an energy that rests on assumed parameters; no sensitivity was run, which "
        "would say what flips with them."
        if found is None
        else "† is a figure whose conclusion (better or worse, and by 5 %) flips with an assumed "
        "parameter in its range, or with all drawn together."
    )
    per_trace = [
        _row(
            escape(w) if d == designs[0] else "",
            (
                f'<td class="name">{_swatch(d, comparison)}{escape(d)}</td>',
                *(
                    f"<td>{written(comparison.value(m.of, w, d, BASELINE), m.unit)}</td>"
                    for m in measures
                ),
            ),
            f' class="{"first" if d == designs[0] else ""}"',
        )
        for w in comparison.workloads
        for d in designs
        if comparison.run(w, d)
    ]
    each = _table(
        ("<th>workload</th>", *_heads_of_words("design"), *heads), per_trace, ' data-name="summary"'
    )
    return Group(
        "summary",
        "Summary",
        inner=_table(("<th>design</th>", *heads), rows, ' class="summary"', "scroll")
        + f"<p class='reading'>{escape(legend)}</p>"
        f"<details open><summary>Every trace</summary>{each}</details>",
    )


def _heading(measure: Measure) -> str:
    arrow = "higher is better" if measure.higher_is_better else "lower is better"
    title = escape(measure.title).replace("-", "\u2011")  # at which no line breaks
    sign = "↑" if measure.higher_is_better else "↓"
    return f'<th title="{arrow}">{title}&nbsp;<span class="sign">{sign}</span></th>'


def _best(values: Sequence[float | None], measure: Measure) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return max(known) if measure.higher_is_better else min(known)


def _counterpart(figure: Head) -> str:
    return f'<span class="cf">cf. {escape(figure.cf)}</span>' if figure.cf else ""


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
        known = machine.assumed if machine else ()
        values = {a.parameter: f" = {a.value}" for a in known if a.value is not None}
        listed = ", ".join(
            f"<code>{escape(name + values.get(name, ''))}</code>" for name in figure.assumed
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
        f"{_dagger(figure.assumed)}</h3>{_counterpart(figure)}"
        f"{chooser}</header>"
        f"<p>{escape(figure.shows)}</p>"
        f'<div class="plot" data-plot="{figure.key}" style="min-height:{height}px" role="img" '
        f'aria-label="{escape(figure.title, quote=True)}; its figures are in the table below">'
        "</div>"
        f'<p class="reading">{escape(figure.reading)}</p>{assumed}'
        f"<details><summary>Figures as a table</summary>{_figures_of(figure)}</details></article>"
    )


def _figures_of(figure: Figure) -> str:
    heads = [f"<th>{escape(name)}</th>" for name, _ in figure.table.columns]
    units = [unit for _, unit in figure.table.columns]
    rows = [
        f"<tr>{''.join(_cell(c, u) for c, u in zip(row, units, strict=True))}</tr>"
        for row in figure.table.rows
    ]
    return _table(heads, rows, f' data-name="{figure.key}"')


def _missing(figure: Missing) -> str:
    return (
        f'<article id="{figure.key}" class="figure empty"><header><h3>{escape(figure.title)}</h3>'
        f"{_counterpart(figure)}</header>"
        f'<p class="missing">{escape(figure.reason)}</p></article>'
    )


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
            f"<tr>{_words(claim.where)}"
            f'<td class="name">{escape(claim.metric.replace("_", " "))}'
            f"<small>{escape(claim.design)}, {escape(claim.statistic)}</small></td>"
            f"<td>{escape(row.reported)}</td><td>{ours}</td>"
            f"<td>{gap}</td><td>{relative}</td>"
            f'<td class="name why">{note}</td></tr>'
        )
    left = ("where", "what", "definition")
    heads = [
        f'<th class="{"name" if h in left else ""}">{h}</th>'
        for h in ("where", "what", "paper", "ours", "gap", "relative", "definition")
    ]
    found = sum(row.ours is not None for row in rows)
    return (
        f"<p>{found} of {len(rows)} figures of the paper have one of ours beside them. Gap "
        "is ours minus the paper's (pp: percentage points); relative is ours / the paper's - 1.</p>"
        + _table(heads, body, ' data-name="claims" class="claims"')
    )


def exhibit(table: Exhibit) -> str:
    """A table of the paper as measured: each cell, what it rests on, and the paper's."""
    rows = [
        _row(escape(name), (_exhibited(cell, table.has_paper) for cell in row.values()))
        for name, row in table.rows.items()
    ]
    heads = _heads_of_words(table.head, *table.columns)
    attributes = f' data-name="{anchor(table)}" class="claims"'
    return f"<p>{escape(table.note)}</p>{_table(heads, rows, attributes, 'scroll')}"


def heading(table: Exhibit) -> str:
    """What its section is called."""
    return f"{table.title}, beside the paper's" if table.has_paper else table.title


def anchor(table: Exhibit) -> str:
    """The id of its section."""
    return table.key.replace("_", "-")


def _exhibited(cell: PaperCell, has_paper: bool) -> str:
    told = [cell.evidence] if cell.evidence else []
    if has_paper and cell.programs:
        same = sum(value == cell.ours for value in cell.programs.values())
        told.append(f"the same in {same} of {len(cell.programs)} programs")
    beside = f" ({escape(cell.beside)})" if has_paper else ""
    return (
        f'<td class="name why"><strong>{escape(cell.ours)}</strong>{beside}'
        f"<small>{escape('; '.join(told))}</small></td>"
    )


_VARIANT_METRICS = (
    ("writes removed", "write_reduction", "%"),
    ("mean write", "mean_write_latency_ns", "ns"),
    ("mean read", "mean_read_latency_ns", "ns"),
    ("IPC", "ipc", ""),
    ("energy (nJ)", "energy_nj", ""),
    ("EFIT hits", "efit_hit_rate", "%"),
    ("AMT hits", "amt_hit_rate", "%"),
    ("writes/s", "writes_per_second", ""),
)


def _variants(results: Results) -> list[Group]:
    """Every run that changes a setting of the machine, with its main figures, if there is one."""
    runs = [run for run in results.runs if run.variant]
    if not runs:
        return []
    shown = [
        column
        for column in _VARIANT_METRICS
        if any(run.metric(column[1]) is not None for run in runs)
    ]
    heads = _heads_of_words("trace", "design", "setting")
    heads += [f"<th>{name}</th>" for name, _, _ in shown]
    rows = [
        _row(
            escape(run.trace),
            (
                _words(run.design),
                f'<td class="name"><code>{escape(run.variant_label)}</code></td>',
                *(_cell(run.metric(metric), unit) for _, metric, unit in shown),
            ),
        )
        for run in runs
    ]
    inner = (
        "<p>Runs that change a setting of the machine; no other part of this report but the "
        "sizes of caches and the readings of claims counts them.</p>"
        f"<details><summary>{len(runs)} runs</summary>"
        + _table(heads, rows, ' data-name="variants"')
        + "</details>"
    )
    return [Group("variants", "Variants", inner=inner)]


def _assumptions(results: Results) -> Group:
    used = {name for run in results.runs for name in run.assumed}
    listed = list(results.machine.assumed)
    unknown = sorted(used - {a.parameter for a in listed})
    rows = [
        (a.parameter, _value(a.value), a.why, "yes" if a.parameter in used else "no")
        for a in listed
    ]
    rows += [(name, "–", "the machine gives no reason", "yes") for name in unknown]
    inner = "<p>No parameter of this machine is assumed: each has a source.</p>"
    if rows:
        inner = (
            "<p>No source gives these values. Figures that rest on them carry a †; settle them "
            "with <code>--set parameter=value</code>.</p>"
            + _settings(("parameter", "value", "why", "used here"), rows)
        )
    return Group("assumed", "Assumptions", inner=inner)


def _parameters(results: Results) -> Group:
    assumed = {a.parameter for a in results.machine.assumed}
    rows = [
        (name + ("†" if name in assumed else ""), _value(value))
        for name, value in sorted(results.machine.parameters.items())
    ]
    inner = "<p>These results do not list the machine's parameters.</p>"
    if rows:
        inner = _settings(("parameter", "value"), rows)
    summary = f"<summary>Machine {escape(results.machine.name)}</summary>"
    inner = f"<details open>{summary}{inner}</details>"
    return Group("parameters", "Parameters", inner=inner)


def _settings(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return _table(
        _heads_of_words(*heads),
        (_row(f"<code>{escape(name)}</code>", map(_words, cells)) for name, *cells in rows),
    )


def _value(value: JsonValue) -> str:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return plain(value)
    return value if isinstance(value, str) else json.dumps(value)
