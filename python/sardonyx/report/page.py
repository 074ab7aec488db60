"""The pages of figures: what stands at their head, and their tables beside the figures.

``markup`` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sardonyx import _core
from sardonyx.draw.figure import Figure, Missing, design_colour
from sardonyx.papers.claims import ClaimRow, written_claim, written_gap
from sardonyx.papers.reproduction import BesidePaper, Exhibit
from sardonyx.papers.reproduction import Cell as PaperCell
from sardonyx.report.content import (
    Block,
    Folded,
    Grid,
    Group,
    Row,
    Td,
    Text,
    Th,
    cell,
    frame,
    heads_of_words,
    words,
)
from sardonyx.report.markup import Names, page_of_figures
from sardonyx.report.workloads import summary as workload_summary
from sardonyx.runs import stores
from sardonyx.runs.answers import answers
from sardonyx.runs.caveats import unsettled, warnings
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.facts import Trace
from sardonyx.runs.measures import (
    BASELINE,
    HANGING,
    MEASURES,
    Measure,
    Two,
    assumed_by,
    geometric_mean,
    plain,
    ratio_of,
    written,
)
from sardonyx.runs.merging import algorithms
from sardonyx.runs.origin import Origin, here
from sardonyx.runs.programs import ACCESSES, BYTES, runtime_ratio, traffic_ratio
from sardonyx.runs.results import Machine, Results, Run
from sardonyx.runs.seeds import said as seeds_of
from sardonyx.runs.sensitivity import MEAN
from sardonyx.runs.spread import Estimate

#: The design that programs are compared with.
PLAIN = "no-encryption"
SPREAD = (
    " Figures are means over seeds; behind ± stands half of the 95 % interval (Student's t), in "
    "percent of the value, of shares in points (pp)."
)
#: Designs that have no summary of writes and energy.
OF_THEIR_OWN = {*stores.designs(), *algorithms()}


def render(
    comparison: Comparison, groups: Sequence[Group], beside: BesidePaper, origin: Origin
) -> str:
    """The whole page."""
    results = comparison.results
    return page(
        "Simulation report",
        f"{', '.join(results.designs)} on {results.machine.name}",
        results.machine.source,
        [
            ("machine", results.machine.name),
            ("designs", ", ".join(results.designs)),
            *([("seeds", seeds)] if (seeds := seeds_of(results)) else []),
            *workload_summary(results.traces),
        ],
        [
            *([] if set(results.designs) <= OF_THEIR_OWN else _summaries(comparison)),
            *groups,
            *_variants(results),
            _assumptions(results),
            _parameters(results),
            *_provenance(origin),
        ],
        [
            *beside.verdict,
            *(each.text() for each in answers(comparison)),
            beside.note,
            *warned(results.traces),
            *unsettled(results),
        ],
        results.machine,
        (origin, results.sardonyx),
        {"workload": [run.trace for run in results.runs], "design": results.designs},
    )


def _provenance(origin: Origin) -> list[Group]:
    """The command, the date, the commit, and the trace files' SHA-256, if the results have them."""
    names = ("command", "date", "commit")
    facts = [(name, origin.said[name]) for name in names if name in origin.said]
    facts += [(f"SHA-256 of {path}", digest) for path, digest in origin.hashes.items()]
    if not facts:
        return []
    rows = [Row([words(name), Td(said, "name", as_="code")]) for name, said in facts]
    return [Group("origin", "Where this comes from", inner=[Grid(heads_of_words("", ""), rows)])]


def warned(traces: Sequence[Trace]) -> list[str]:
    """What a reader must know of traces before she believes a mean."""
    return [f"Warning: {line}." for line in warnings(traces)]


def page(
    heading: str,
    subject: str,
    source: str,
    facts: Iterable[tuple[str, str]],
    groups: Sequence[Group],
    notes: Sequence[str] = (),
    machine: Machine | None = None,
    made: tuple[Origin, str] | None = None,
    names: Names | None = None,
) -> str:
    """A page about ``subject``: where its figures come from, what it is of, and its sections.

    ``made`` are its origin and version, if not those of this process, ``names`` the workloads and
    designs that its reader may choose from.
    """
    kept, absent = _drawn(groups)
    known = machine.assumed if machine else ()
    return page_of_figures(
        f"Sardonyx: {subject}",
        heading,
        source,
        [*facts, *frame(*(made or (here(), _core.VERSION)))],
        [note for note in notes if note],
        kept,
        absent,
        {a.parameter: f" = {a.value}" for a in known if a.value is not None},
        names or {},
    )


def _drawn(groups: Sequence[Group]) -> tuple[list[Group], list[Missing]]:
    """The figures that have data, and those without: no card is empty."""
    absent = [f for group in groups for f in group.figures if isinstance(f, Missing)]
    kept = [
        replace(group, figures=[f for f in group.figures if isinstance(f, Figure)])
        for group in groups
    ]
    return [group for group in kept if group.figures or group.inner], absent


# ---- summary


def _summaries(comparison: Comparison) -> list[Group]:
    if comparison.beside_baseline or not comparison.programs.names:
        return [_summary(comparison)]
    return _summary_of_programs(comparison)


def _summary_of_programs(comparison: Comparison) -> list[Group]:
    """Programs next to `no-encryption`, because SCA has no `baseline`; none without it."""
    programs = comparison.programs
    if PLAIN not in programs.designs or len(programs.designs) < 2:
        return []
    cores = programs.cores[0]
    columns = {
        "runtime": runtime_ratio,
        "bytes written": traffic_ratio(BYTES),
        "accesses written": traffic_ratio(ACCESSES),
    }

    def beside(of: Two, design: str) -> Td:
        a, b = ({"design": name, "cores": cores} for name in (design, PLAIN))
        value, half = programs.estimated_mean(of, a, b)
        return cell(value, "x", half)

    rows = [
        Row([_design(d, comparison, head=True), *(beside(of, d) for of in columns.values())])
        for d in programs.designs
        if d != PLAIN
    ]
    legend = (
        f"A transaction beside the same program's under {PLAIN}, on {cores} "
        f"{'core' if cores == 1 else 'cores'}: arithmetic means over "
        f"{len(programs.names)} programs. Lower is better."
    )
    if seeds_of(comparison.results):
        legend += SPREAD
    heads = [Th(name) for name in ("design", *columns)]
    table = Grid(heads, rows, kind="summary arithmetic", tall=False)
    each = {
        d: [
            programs.estimates(of, *({"design": name, "cores": cores} for name in (d, PLAIN)))
            for of in columns.values()
        ]
        for d in programs.designs
        if d != PLAIN
    }
    every = _every(
        programs.names,
        list(each),
        lambda name, d: [cell(found[name].value, "x", found[name].half) for found in each[d]],
        comparison,
        heads[1:],
    )
    return [Group("summary", "Summary", inner=[table, Text(legend, "reading"), *every])]


def _summary(comparison: Comparison) -> Group:
    designs = comparison.beside_baseline
    if not designs:
        text = "Add `baseline` and another design to --designs for ratios."
        return Group("summary", "Summary", inner=[*_absolute(comparison), Text(text, "reading")])
    measures = list(MEASURES.values())
    heads = [_heading(m) for m in measures]
    estimates = {d: [comparison.estimated_mean(m, d) for m in measures] for d in designs}
    means = {d: [each.value for each in estimates[d]] for d in designs}
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
        Row(
            [
                _design(d, comparison, head=True),
                *(
                    cell(
                        v,
                        m.unit,
                        half,
                        kind="best" if len(designs) > 1 and v is not None and v == top else "",
                        rests=rests[d, m.key],
                        small=_p99_ratio(comparison, m, d),
                    )
                    for (v, half), m, top in zip(estimates[d], measures, best, strict=True)
                ),
            ]
        )
        for d in designs
    ]
    rows.insert(0, _baseline(comparison, measures))
    count, one = len(comparison.workloads), len(comparison.workloads) == 1
    legend = (
        f"Over {count} {'workload' if one else 'workloads'}. "
        "The baseline's row is absolute: writes to its medium, mean latencies, IPC, p99, energy, "
        "bandwidth. Below it each design stands beside the baseline on the same trace, p99 and "
        "bandwidth in their units. "
        "Speed-ups, IPC, energy and p99 are geometric means, shares arithmetic ones; IPC and "
        "energy are ratios to the baseline. Best in bold. "
    ) + (
        "† is a time or an energy that rests on assumed parameters; no sensitivity was run, which "
        "would say what turns with them."
        if found is None
        else "† is a figure whose conclusion (better or worse, and by 5 %) turns in some cell of "
        "assumed parameters."
    )
    if seeds_of(comparison.results):
        legend += SPREAD
    return Group(
        "summary",
        "Summary",
        inner=[
            # The table of a download is the longest: of one trace there is none below.
            Grid([Th("design"), *heads], rows, "summary" if one else "", "summary", tall=False),
            Text(legend, "reading"),
            *_every_trace(comparison, measures, heads, [BASELINE, *designs]),
        ],
    )


def _every_trace(
    comparison: Comparison, measures: Sequence[Measure], heads: Sequence[Th], designs: Sequence[str]
) -> list[Block]:
    """A row a trace and design: the baseline's own figures, and without one everybody's."""
    ratios, tried = comparison.beside_baseline, comparison.results.sensitivity is not None

    def cells(w: str, d: str) -> list[Td]:
        run = comparison.run(w, d)
        if run is None or d not in ratios:
            return [] if run is None else [_own([run], measure, tried) for measure in measures]
        return [_estimated(comparison.estimate(m.of, w, d, BASELINE), m) for m in measures]

    return _every(comparison.workloads, designs, cells, comparison, heads)


def _every(
    names: Sequence[str],
    designs: Sequence[str],
    cells: Callable[[str, str], list[Td]],
    comparison: Comparison,
    heads: Sequence[Th],
) -> list[Block]:
    """A row a workload and design that have cells; of one workload the means are that."""
    if len(names) == 1:
        return []
    rows = []
    for name in names:
        known = {design: each for design in designs if (each := cells(name, design))}
        for at, (design, each) in enumerate(known.items()):
            head = Td("" if at else name, head=True, number=name)
            rows.append(Row([head, _design(design, comparison), *each], "" if at else "first"))
    table = Grid([Th("workload"), *heads_of_words("design"), *heads], rows, "summary", "every")
    return [Folded("Every trace", [table], open=True)]


def _estimated(found: Estimate, measure: Measure) -> Td:
    return cell(found.value, measure.unit, found.half)


def _baseline(comparison: Comparison, measures: Sequence[Measure]) -> Row:
    """The baseline's own figures; over several workloads their geometric mean."""
    runs, tried = comparison.runs(BASELINE), comparison.results.sensitivity is not None
    cells = [_own(runs, measure, tried) for measure in measures]
    return Row([_design(BASELINE, comparison, head=True), *cells])


def _own(runs: Sequence[Run], measure: Measure, tried: bool) -> Td:
    """A design's own figure; ``tried`` if it is known what turns, and no own figure does."""
    value = geometric_mean(run.metric(measure.base) for run in runs) if measure.base else None
    marked = measure.aspect in HANGING and not tried and value is not None
    rests = assumed_by(runs, measure.aspect) if marked else ()
    found = cell(value, measure.base_unit, rests=rests)
    return found if measure.base_unit or value is None else replace(found, text=f"{value:.3g}")


def _absolute(comparison: Comparison) -> list[Block]:
    """Each design's own figures, if there is no baseline to compare with."""
    measures = [m for m in MEASURES.values() if m.base]
    tried = comparison.results.sensitivity is not None
    rows = [
        Row(
            [
                _design(d, comparison, head=True),
                *(_own(comparison.runs(d), m, tried) for m in measures),
            ]
        )
        for d in comparison.designs
    ]
    titles = {"write_speedup": "Mean write", "read_speedup": "Mean read"}
    heads = [Th(titles.get(m.key, m.title)) for m in measures]
    every = _every_trace(comparison, measures, heads, comparison.designs)
    return [Grid([Th("design"), *heads], rows, kind="summary", tall=False), *every]


def _p99_ratio(comparison: Comparison, measure: Measure, design: str) -> str:
    """The ratio to the baseline's of the one absolute figure in a design's row."""
    if measure.key != "p99_write":
        return ""
    ratios = comparison.each(ratio_of(measure.base), design).values()
    value = geometric_mean(ratios)
    return "" if value is None else written(value, "x")


def _design(name: str, comparison: Comparison, head: bool = False) -> Td:
    swatch = design_colour(name, comparison.designs)
    return Td(name, "" if head else "name", head, swatch=swatch)


def _heading(measure: Measure) -> Th:
    higher = measure.higher_is_better
    title = measure.title.replace("-", "\u2011")  # at which no line breaks
    if higher is None:
        return Th(title)
    return Th(
        title,
        title="higher is better" if higher else "lower is better",
        sign="↑" if higher else "↓",
    )


def _best(values: Sequence[float | None], measure: Measure) -> float | None:
    known = [value for value in values if value is not None]
    if not known or measure.higher_is_better is None:
        return None
    best = max(known) if measure.higher_is_better else min(known)
    # A ratio that is worse than the baseline's is not marked as the best.
    worse = best < 1 if measure.higher_is_better else best > 1
    return None if measure.unit == "x" and worse else best


# ---- claims, assumptions, parameters


def claims(rows: Sequence[ClaimRow]) -> list[Block]:
    """Each figure of the paper beside ours."""
    body = []
    for row in rows:
        gap, relative = written_gap(row)
        claim = row.claim
        ours = Td("none", as_="missing", number="")
        unit = {"%": "share", "pp": "share", "x": "×", "": ""}[row.unit]
        paper = Td(row.reported)
        if not row.reported.startswith(("≥", "≤", ">")):
            paper = Td(row.reported, number=repr(row.claim.value), unit=unit)
        if row.ours is not None:
            text, number = written_claim(row.ours, row.unit), repr(row.ours)
            ours = Td(text, number=number, unit=unit, as_="strong", rests=row.assumed)
        readings = [
            f"{name}: {written_claim(value, row.reading_unit)}"
            for name, value in row.readings.items()
        ]
        what = Td(claim.metric.replace("_", " "), "name", small=f"{claim.design}, {claim.stat}")
        note = Td(row.reason or row.note, "name why", listed=readings)
        gaps = [
            Td(text, number="" if value is None else repr(value), unit=unit)
            for text, value, unit in ((gap, row.gap, unit), (relative, row.relative_gap, "share"))
        ]
        figures = [paper, ours, *gaps]
        cells = [words(claim.where), what, *figures, words(row.verdict), note]
        body.append(Row(cells))
    left = ("where", "what", "judged", "definition")
    heads = [
        Th(h, "name" if h in left else "")
        for h in ("where", "what", "paper", "ours", "gap", "relative", "judged", "definition")
    ]
    found = sum(row.ours is not None for row in rows)
    text = (
        f"{found} of {len(rows)} figures of the paper have one of ours beside them. Gap "
        "is ours minus the paper's (pp: percentage points); relative is ours / the paper's - 1. "
        "Judged is whether the paper's words hold, so that a limit (≤) is held against its bound, "
        "and apart from it whether ours is within 15 % of the figure."
    )
    return [Text(text), Grid(heads, body, "claims", "claims")]


def exhibit(table: Exhibit) -> list[Block]:
    """A table of the paper as measured: each cell, what it rests on, and the paper's."""
    rows = [
        Row([Td(name, head=True), *(_exhibited(cell, table.has_paper) for cell in row.values())])
        for name, row in table.rows.items()
    ]
    heads = heads_of_words(table.head, *table.columns)
    return [Text(table.note), Grid(heads, rows, anchor(table), "claims", tall=False)]


def heading(table: Exhibit) -> str:
    """What its section is called."""
    return f"{table.title}, beside the paper's" if table.has_paper else table.title


def anchor(table: Exhibit) -> str:
    """The id of its section."""
    return table.key.replace("_", "-")


def _exhibited(cell: PaperCell, has_paper: bool) -> Td:
    told = [cell.evidence] if cell.evidence else []
    if has_paper and cell.programs:
        same = sum(value == cell.ours for value in cell.programs.values())
        told.append(f"the same in {same} of {len(cell.programs)} programs")
    beside = f" ({cell.beside})" if has_paper else ""
    return Td(cell.ours, "name why", as_="strong", beside=beside, small="; ".join(told))


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
    """Every run that changes a setting of the machine, with its main figures."""
    runs = [run for run in results.runs if run.variant]
    if not runs:
        return []
    shown = [
        column
        for column in _VARIANT_METRICS
        if any(run.metric(column[1]) is not None for run in runs)
    ]
    heads = [*heads_of_words("trace", "design", "setting"), *(Th(name) for name, _, _ in shown)]
    rows = [
        Row(
            [
                Td(run.trace, head=True),
                words(run.design),
                Td(run.variant_label, "name", as_="code"),
                *(cell(run.metric(metric), unit) for _, metric, unit in shown),
            ]
        )
        for run in runs
    ]
    text = (
        "Runs that change a setting of the machine; no other part of this report but the "
        "sizes of caches and the readings of claims counts them."
    )
    table = Folded(f"{len(runs)} runs", [Grid(heads, rows, "variants")])
    return [Group("variants", "Variants", inner=[Text(text), table])]


def _assumptions(results: Results) -> Group:
    used = {name for run in results.runs for name in run.assumed}
    listed = list(results.machine.assumed)
    unknown = sorted(used - {a.parameter for a in listed})
    rows = [
        (a.parameter, _value(a.value), a.why, "yes" if a.parameter in used else "no")
        for a in listed
    ]
    rows += [(name, "–", "the machine gives no reason", "yes") for name in unknown]
    if not rows:
        text = "No parameter of this machine is assumed: each has a source."
        return Group("assumed", "Assumptions", inner=[Text(text)])
    text = "No source gives these values. Figures that rest on them carry a †; settle them with "
    table = _settings(("parameter", "value", "why", "used here"), rows)
    inner: list[Block] = [Text(text, code="--set parameter=value"), table]
    return Group("assumed", "Assumptions", inner=inner)


def _parameters(results: Results) -> Group:
    assumed = {a.parameter for a in results.machine.assumed}
    rows = [
        (name + ("†" if name in assumed else ""), _value(value))
        for name, value in sorted(results.machine.parameters.items())
    ]
    inner: Block = Text("These results do not list the machine's parameters.")
    if rows:
        inner = _settings(("parameter", "value"), rows)
    folded = Folded(f"Machine {results.machine.name}", [inner])
    return Group("parameters", "Parameters", inner=[folded])


def _settings(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Grid:
    return Grid(
        heads_of_words(*heads),
        [Row([Td(name, head=True, as_="code"), *map(words, cells)]) for name, *cells in rows],
    )


def _value(value: object) -> str:
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return plain(value)
    return value if isinstance(value, str) else json.dumps(value)
