"""Results for the terminal: designs beside the baseline, and a paper's claims beside ours.

Tables fit the width they are given: a narrow terminal gets the same figures in fewer columns and
more rows, never cut-off ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from sardonyx.draw.grid import folded, grid, numbers, units_in_heads, whole
from sardonyx.papers.claims import ClaimRow, written_claim, written_gap, written_paper
from sardonyx.papers.reproduction import BesidePaper, Exhibit
from sardonyx.papers.sample import Sample
from sardonyx.runs.answers import answers
from sardonyx.runs.caveats import beside_caches, size, unsettled, warnings, worth
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.conclusions import EQUAL
from sardonyx.runs.facts import Trace
from sardonyx.runs.measures import (
    BASELINE,
    HANGING,
    MEASURES,
    Measure,
    Two,
    assumed_by,
    geometric_mean,
    ratio_of,
    written,
)
from sardonyx.runs.programs import per_transaction
from sardonyx.runs.results import Results, Run
from sardonyx.runs.seeds import said as seeds_of
from sardonyx.runs.sensitivity import MEAN, Sensitivity
from sardonyx.runs.spread import beside, shown

VERY_WIDE = 160
WIDE = 108
MIDDLE = 72
DAGGER = "†"
#: This many failures are listed; ``--json`` has all of them.
FAILURES = 3
#: The styles of lines that say more of a table.
UNSETTLED, NOTES = "yellow italic", ("dim", "yellow italic")


def noted(people: Console) -> bool:
    """Whether notes below tables are wanted: everywhere but on a terminal without ``--notes``."""
    return bool(getattr(people, "notes", True))


def compare_table(comparison: Comparison, width: int = 100, notes: bool = True) -> RenderableType:
    """Every trace under every design beside the baseline, the means over traces, and what is
    assumed.

    ``width`` is the terminal's in columns; at 40 and more no figure is cut. Without ``notes`` a
    line says that there are some.
    """
    parts = _compared(comparison, width)
    if notes:
        return Group(*parts)
    left = [part.plain for part in parts if isinstance(part, Text) and part.style in NOTES]
    shown = [part for part in parts if not (isinstance(part, Text) and part.style in NOTES)]
    moving = sum(each.startswith("not settled") for each in left)
    said = [f"not settled: {moving} figure{'s' * (moving > 1)}"] * bool(moving)
    said += [f"{DAGGER} rests on assumed parameters"] * any(DAGGER in each for each in left)
    return Group(*shown, Text("; ".join([*said, "--notes explains the table"]), style="dim"))


def _compared(comparison: Comparison, width: int) -> list[RenderableType]:
    results = comparison.results
    spread = [*_spread_note(results), _verified_note(results)]
    spread += [Text(f"not settled: {line}", style=UNSETTLED) for line in unsettled(results)]
    if any(run.metric("transactions") for run in results.runs):
        return [*_programs(results, width), *answer_lines(comparison), *spread]
    if not comparison.beside_baseline:
        return [*_plain_figures(results), *spread, *worth_tables(results)]
    measures = list(MEASURES.values())
    # An interval doubles a cell.
    fits = width >= (VERY_WIDE if seeds_of(results) else MIDDLE)
    tables = [_comparison(comparison, measures, width)] if fits else []
    for columns in ([measures[:5], measures[5:]], [measures[:3], measures[3:5], measures[5:]]):
        if not tables or not all(whole(each, width) for each in tables):
            tables = [_comparison(comparison, each, width) for each in columns]
    parts: list[RenderableType] = [*tables, Text(), *answer_lines(comparison), Text()]
    parts.append(
        Text(
            "The baseline's row is absolute: its medium's writes (data, counters and tables), mean "
            "latencies, IPC, p99, energy and bandwidth. Below it are ratios to that, but for p99, "
            "bandwidth and writes saved, which is the share of the program's writes that stored no "
            "line. Lower is better for the medium's writes, p99 and energy. "
            f"{_cores(comparison)} "
            "Means over traces: arithmetic for writes saved, geometric for the rest"
            f"{'; (n of m) are the traces on which it is better' if width >= VERY_WIDE else ''}.",
            style="dim",
        )
    )
    parts += _assumed_note(assumed_by(comparison.runs(), "energy"), results.sensitivity)
    return [*parts, *spread, *worth_tables(results)]


#: Green and red only where most workloads agree.
TONES = {"better": "green", "worse": "red", "mixed": ""}


def answer_lines(comparison: Comparison) -> list[Text]:
    """The answer of the comparison, a line for each design."""
    lines = []
    for answer in answers(comparison):
        line = Text(f"{answer.design} beside {answer.over}: ", style="bold")
        for number, spread in enumerate(answer.spreads):
            line.append("; " if number else "", style="not bold")
            line.append(spread.text(), style=f"not bold {TONES[spread.tone]}".strip())
        lines.append(line.append("."))
    return lines


def _spread_note(results: Results) -> list[Text]:
    """The meaning of ±, if figures are means over seeds."""
    if not (seeds := seeds_of(results)):
        return []
    return [
        Text(
            f"Means over seeds ({seeds}), with half of the 95 % interval (Student's t): percent of "
            "the value, of shares points (pp). A ratio is the mean of each seed's own. Facts of "
            "traces are the first seed's.",
            style="dim",
        )
    ]


def _verified_note(results: Results) -> Text:
    """The number of reads that were compared with what was written, of all runs together."""
    figures = ("reads_verified", "reads_of_unwritten_lines")
    counts = [[run.metric(name) for run in results.runs] for name in figures]
    known = [[count for count in each if count is not None] for each in counts]
    if any(len(each) < len(results.runs) for each in known):
        return Text("reads: not verified", style="dim")
    verified, unwritten = map(sum, known)
    said = f"reads verified: {verified:,.0f}; of lines with unknown content: {unwritten:,.0f}"
    if before := sum(run.metric("reads_of_preloaded_lines") or 0 for run in results.runs):
        said += f"; of the verified, of contents from before the run: {before:,.0f}"
    return Text(said, style="dim")


#: The figures whose intervals a sample shows: the name, the heading and the unit.
SAMPLED = (
    ("mean_write_latency_ns", "write", "ns"),
    ("mean_read_latency_ns", "read", "ns"),
    ("ipc", "IPC", ""),
    ("energy_nj", "energy", "nj"),
    ("medium_writes", "medium's writes", "number"),
)


def _table(*names: str, figures: Sequence[Column] = (), gap: int = 2) -> Table:
    return grid(*folded(*names), *figures, padding=(0, gap, 0, 0), header_style="bold")


def mix_table(results: Results) -> RenderableType:
    """What each program of a mix loses to the others, under each design."""
    table = _table("mix", "design", "weighted speed-up", "fairness", "slowdown of each")
    for run in results.runs:
        if run.mix is None:
            continue
        each = (f"{one.trace} {written(one.slowdown, 'ratio')}" for one in run.mix)
        figures = [written(run.metric(name), "ratio") for name in ("weighted_speedup", "fairness")]
        table.add_row(run.trace, run.design, *figures, ", ".join(each))
    return table


def sample_table(results: Results, width: int = 100) -> RenderableType:
    """How sure the figures of sampled runs are: each with half of its 95 % interval."""
    figures = SAMPLED if width >= WIDE else SAMPLED[:3]
    table = _table("trace", "design", figures=numbers(*(heading for _, heading, _ in figures)))
    sampled = [run for run in results.runs if run.sample is not None]
    for run in sampled:
        cells = []
        for name, _, unit in figures:
            value, half = (
                run.metric(name),
                (run.sample.half_widths.get(name) if run.sample else None),
            )
            if value is None or half is None:
                cells.append(written(value, unit))
            else:
                share = f" ±{100 * half / abs(value):.1f} %" if value else ""
                cells.append(written(value, unit) + share)
        table.add_row(run.trace, run.design, *cells)
    parts = {f"{run.sample.timed / run.sample.of:.1%}" for run in sampled if run.sample}
    one = sampled[0].sample
    assert one is not None, "only sampled runs are shown"
    note = (
        f"{one.windows} windows of {one.requests:,} requests, after {one.ramp:,} each that do not "
        f"count; {' or '.join(sorted(parts))} of the requests were timed. Figures are of a window, "
        "the mean over all, with half of its 95 % interval (Student's t); percentiles are those of "
        "all windows' requests, without an interval. A ratio of two designs is surer than either, "
        "as all have the same windows."
    )
    return Group(Text(), table, Text(note, style="dim"))


def worth_tables(results: Results) -> list[RenderableType]:
    """What a reader must know of the traces before she believes a mean, and warnings."""
    traces = worth(results.traces)
    if not traces:
        return []
    heads = ("writes", "in bursts", "footprint", "below caches of")
    table = _table("trace", figures=numbers(*heads, overflow="fold"))
    for each in traces:
        table.add_row(
            each.name,
            f"{each.writes:,}",
            written(each.burst_share, "%"),
            size(each.footprint),
            size(each.recorded_below),
        )
    return [table, Text(beside_caches(results), style="dim"), *worth_warnings(results.traces)]


def worth_warnings(traces: Sequence[Trace]) -> list[Text]:
    """What makes a mean over these traces doubtful, a sentence each."""
    return [Text(f"warning: {line}.", style="yellow") for line in warnings(traces)]


def _cores(comparison: Comparison) -> str:
    runs = comparison.runs()
    cores = sorted({run.cores for run in runs})
    number = " or ".join(map(str, cores))
    threads = ", a core for each thread" if any(run.threads for run in runs) else ""
    return f"{number} {'core' if cores == [1] else 'cores'} ran each trace{threads}."


def in_lines(key: str, most: int = 20) -> str:
    """A key as a heading: a long one has a line for each of its parts."""
    return key if len(key) <= most else key.replace(".", ".\n")


def claims_table(rows: Sequence[ClaimRow], width: int = 100) -> RenderableType:
    """A paper's figures beside ours, each with its gap; definitions and other readings below
    each.
    """
    if width < MIDDLE:
        return Group(*(_claim_lines(row) for row in rows))
    claim = Column("claim", ratio=1, overflow="fold")
    figures = numbers("paper", "ours", "gap", "relative", no_wrap=True)
    table = _table(figures=[claim, *figures])
    for row in rows:
        gap, relative = written_gap(row)
        table.add_row(
            Group(_claim_name(row), _claim_note(row)),
            row.reported,
            Text(_ours(row), style="bold"),
            gap,
            relative,
        )
    assumed = sorted({name for row in rows if row.hangs for name in row.assumed})
    return Group(table, *_assumed_note(assumed, None))


def cells_table(sample: Sample) -> RenderableType:
    """Each claim over the sample's cells: in how many ours is as the paper's words say, has its
    sign and is near its figure, on which workloads, and what decides it.
    """
    lines = [
        Text(
            f"\nOver {sample.cells} cells (seed {sample.seed}) that differ in "
            f"{len(sample.choices)} choices which the paper leaves open:",
            style="bold",
        )
    ]
    lacking = [claim for claim in sample.claims if not claim.cells]
    for claim in sample.claims:
        if not claim.cells:
            continue
        whose = "" if claim.design == "workload" else f"{claim.design} "
        median, least, most = (
            written_claim(each, claim.unit) for each in (claim.median, claim.least, claim.most)
        )
        said = Text(f"{claim.where}: {whose}{claim.title}: ")
        if claim.holds is not None:
            said.append(f"{claim.words} in {claim.holds.written} cells", style="bold")
            said.append("; ")
        for words, count in (("its sign", claim.sign), ("within 15 %", claim.near)):
            if count is not None:
                said.append(f"{words} in {count.number} of {count.of}; ")
        if claim.pairs is not None:
            each = ", ".join(f"{w.workload} {w.holds}/{w.cells}" for w in claim.workloads)
            said.append(f"on one workload in {claim.pairs.written} ({each}); ")
        paper = written_paper(claim.kind, claim.paper, claim.unit)
        said.append(f"median {median} ({least} to {most}), the paper {paper}")
        said.append(f"; decided by {claim.decided}", style="dim")
        lines.append(said)
    notes = [sample.note] if sample.note else []
    if lacking:
        notes.append(f"{len(lacking)} claims are of figures that no cell has.")
    if sample.lacking:
        notes.append(f"{sample.lacking} of {sample.cells} cells lack a run of a workload.")
    if sample.redrawn:
        notes.append(f"In {sample.redrawn} cells keys ruled each other out, and took other values.")
    notes += [f"could not be run: {each}" for each in sample.failures[:FAILURES]]
    return Group(*lines, *(Text(each, style="dim") for each in notes), Text())


def exhibit_table(exhibit: Exhibit) -> RenderableType:
    """A table of the paper as measured, each cell with what it rests on and what the paper says."""
    table = _table(exhibit.title, *exhibit.columns)
    for name, row in exhibit.rows.items():
        cells = []
        for cell in row.values():
            style = "" if cell.agrees is None else "green" if cell.agrees else "red"
            told = [cell.beside] if exhibit.has_paper else []
            told += [cell.evidence] if cell.evidence else []
            beside = Text("; ".join(told), style="dim")
            cells.append(Group(Text(cell.ours, style=style), beside))
        table.add_row(Text(name), *cells)
    return Group(table, Text(exhibit.note, style="dim"))


def _comparison(comparison: Comparison, measures: list[Measure], width: int) -> Table:
    designs = comparison.beside_baseline
    mark = _Marks(comparison.results.sensitivity)
    wide = width >= WIDE
    names = ("trace", "design") if wide else ("design",)
    titles = (m.title if wide else "\n".join(m.title.rsplit(" ", 1)) for m in measures)
    table = _table(*names, figures=numbers(*titles), gap=2 if wide else 1)
    designs_at = table.columns[len(names) - 1]
    designs_at.no_wrap = max(map(len, designs)) < width // 3

    def rows(heading: str, cells: dict[str, list[str]]) -> None:
        if not wide:
            table.add_row(Text(heading, style="bold"))
        for index, (design, row) in enumerate(cells.items()):
            name = [Text("" if index else heading, style="bold")] if wide else []
            table.add_row(*name, design if wide else f" {design}", *row)

    for workload in comparison.workloads:
        cells = {}
        base = comparison.run(workload, BASELINE)
        if base:
            cells[BASELINE] = [_absolute([base], m, mark) for m in measures]
        for design in designs:
            if run := comparison.run(workload, design):
                runs = [run, base] if base else [run]
                found = [comparison.estimate(m.of, workload, design, BASELINE) for m in measures]
                cells[design] = [
                    written(v, m.unit) + mark(v, m, runs, design, workload) + shown(half, v, m.unit)
                    for (v, half), m in zip(found, measures, strict=True)
                ]
        rows(workload, cells)
    if len(comparison.workloads) > 1:
        table.add_section()
        means = {BASELINE: [_absolute(comparison.runs(BASELINE), m, mark) for m in measures]}
        for design in designs:
            runs = comparison.runs(BASELINE, design)
            found = [comparison.estimated_mean(m, design) for m in measures]
            means[design] = [
                written(v, m.unit)
                + mark(v, m, runs, design)
                + shown(half, v, m.unit)
                + (_better_on(comparison, m, design) if width >= VERY_WIDE else "")
                for (v, half), m in zip(found, measures, strict=True)
            ]
        rows(f"mean of {len(comparison.workloads)}", means)
    if width < VERY_WIDE:
        units_in_heads(table)
    return table


def _better_on(comparison: Comparison, measure: Measure, design: str) -> str:
    """On how many traces a ratio is better than 1."""
    gains = [each for each in comparison.each(measure.of, design).values() if each is not None]
    if measure.unit != "x" or not gains:
        return ""
    up = measure.higher_is_better
    better = sum(each > 1 + EQUAL if up else each < 1 - EQUAL for each in gains)
    return f" ({better} of {len(gains)})"


def _absolute(runs: Sequence[Run], measure: Measure, mark: _Marks) -> str:
    """The baseline's own figure; over several runs their geometric mean."""
    value = geometric_mean(run.metric(measure.base) for run in runs) if measure.base else None
    text = written(value, measure.base_unit) if measure.base_unit else _plain(value)
    return text + mark(value, measure, runs, BASELINE) + _own_spread(runs, measure.base)


def _own_spread(runs: Sequence[Run], metric: str, unit: str = "") -> str:
    """The interval of one run's own figure, if it is a mean over seeds."""
    if len(runs) != 1 or runs[0].seeds is None:
        return ""
    return shown(runs[0].seeds.half_widths.get(metric), runs[0].metric(metric), unit)


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:#.3g}".rstrip(".")


@dataclass(frozen=True, slots=True)
class _Marks:
    """Which figures have a dagger: those whose conclusion turns with assumed keys, or, as long
    as nobody has tried, those of time or energy that rest on something assumed.
    """

    sensitivity: Sensitivity | None

    def __call__(
        self,
        value: float | None,
        measure: Measure,
        runs: Sequence[Run],
        design: str,
        workload: str = MEAN,
    ) -> str:
        if value is None or measure.aspect not in HANGING:
            return " "
        if self.sensitivity is None:
            return DAGGER if assumed_by(runs, measure.aspect) else " "
        return DAGGER if self.sensitivity.flipped(measure.key, design, BASELINE, workload) else " "


def _plain_figures(results: Results) -> list[RenderableType]:
    """The figures without a baseline: each run's own."""
    heads = numbers("write", "read", "IPC", "bandwidth")
    table = grid(*folded("run"), *heads, header_style="bold")
    for run in results.runs:
        name = " ".join(part for part in (run.trace, run.design, run.variant_label) if part)
        ipc = run.metric("ipc")
        table.add_row(
            name,
            written(run.metric("mean_write_latency_ns"), "ns")
            + _own_spread([run], "mean_write_latency_ns"),
            written(run.metric("mean_read_latency_ns"), "ns")
            + _own_spread([run], "mean_read_latency_ns"),
            ("–" if ipc is None else f"{ipc:.3g}") + _own_spread([run], "ipc"),
            written(run.metric("medium_gb_per_s"), "GB/s") + _own_spread([run], "medium_gb_per_s"),
        )
    advice = Text(
        "Mean latencies, and the medium's bandwidth. Add `baseline` and another design to "
        "--designs for speed-ups.",
        style="dim",
    )
    return [table, advice]


def _programs(results: Results, width: int) -> list[RenderableType]:
    """Programs: their speed, relative to the first design of the same program, and their writes."""
    headings = ("trans./s", "runtime", "writes", "bytes", "reads", "ctr hits")
    # An interval doubles a cell.
    narrow = width < WIDE and any(run.seeds for run in results.runs)
    fit = len(headings) if not narrow else 3 if width >= MIDDLE else 2
    columns = [headings[at : at + fit] for at in range(0, len(headings), fit)]
    tables: list[RenderableType] = []
    for chosen in columns:
        table = _table("program", "design", figures=numbers(*chosen), gap=1)
        for label, run, cells in _program_rows(results):
            table.add_row(Text(label, style="bold"), run.design, *(cells[each] for each in chosen))
        tables.append(table)
    note = Text(
        "Runtime beside the first design's; writes, bytes written and reads of the medium a "
        "transaction; look-ups in the counter cache that hit.",
        style="dim",
    )
    assumed = _assumed_note(assumed_by(results.runs, "time"), results.sensitivity)
    return [*tables, note, *assumed]


def _program_rows(results: Results) -> Iterator[tuple[str, Run, dict[str, str]]]:
    """Each run's label (that of the first design of a program only), and its cells by heading."""
    first: dict[tuple[str, int, str], Run] = {}
    for run in results.runs:
        base = first.setdefault((run.trace, run.copies, run.variant_label), run)
        cores = f"×{run.copies}" if run.copies > 1 else ""
        label = " ".join(part for part in (run.trace, cores, run.variant_label) if part)
        rate = run.metric("transactions_per_second")
        runtime, half = beside(ratio_of("runtime_ns"), run, base)
        hits = "counter_cache_hit_rate"
        cells = {
            "trans./s": ("–" if rate is None else f"{rate / 1e6:.3f} M")
            + _own_spread([run], "transactions_per_second"),
            "runtime": written(runtime, "x") + ("" if run is base else shown(half, runtime, "x")),
            "ctr hits": written(run.metric(hits), "%") + _own_spread([run], hits, "%"),
        }
        for heading, metric in (
            ("writes", "medium_writes"),
            ("bytes", "medium_write_bytes"),
            ("reads", "medium_reads"),
        ):
            value, half = beside(_per_transaction(metric), run, run)
            cells[heading] = ("–" if value is None else f"{value:.4g}") + shown(half, value, "")
        yield label if base is run else "", run, cells


def _per_transaction(metric: str) -> Two:
    return lambda run, _: per_transaction(run, metric)


def _assumed_note(names: Sequence[str], sensitivity: Sensitivity | None) -> list[Text]:
    """The assumptions that figures rest on, if there are any."""
    if not names:
        return []
    if sensitivity is not None:
        return [
            Text(
                f"{DAGGER} what this says beside the baseline (better or worse, and by 5 %) turns "
                f"in some cell of assumed keys; of {len(sensitivity.varied)} keys "
                f"{len(sensitivity.turning)} turn something alone.",
                style="dim",
            )
        ]
    number = f"{len(names)} assumed {'parameter' if len(names) == 1 else 'parameters'}"
    where = "report.html has their values and reasons, results.json has them by run"
    tried = "--sensitivity says which conclusions turn with them"
    return [
        Text(f"{DAGGER} a time or an energy that rests on {number}: {where}; {tried}.", style="dim")
    ]


def _claim_name(row: ClaimRow) -> Text:
    claim = row.claim
    whose = "" if claim.design == "workload" else f"{claim.design}: "
    return Text(f"{claim.where}  {whose}{claim.metric.replace('_', ' ')}, {claim.stat}")


def _claim_note(row: ClaimRow) -> Text:
    readings = "; ".join(
        f"{name}: {written_claim(value, row.reading_unit)}" for name, value in row.readings.items()
    )
    note = row.reason or row.note + (f" ({readings})" if readings else "")
    judged = f"{row.verdict}; " if row.verdict else ""
    return Text.assemble(judged, (note, "dim"))


def _ours(row: ClaimRow) -> str:
    if row.ours is None:
        return "–"
    return written_claim(row.ours, row.unit) + (DAGGER if row.hangs else "")


def _claim_lines(row: ClaimRow) -> RenderableType:
    gap, relative = written_gap(row)
    figures = f"  paper {row.reported}, ours {_ours(row)}, gap {gap} ({relative})"
    return Group(_claim_name(row), Text(figures, style="bold"), Text("  ") + _claim_note(row))


def print_beside(people: Console, beside: BesidePaper) -> None:
    """The verdict on a paper, its claims and its tables, as far as there are any."""
    for sentence in beside.verdict:
        people.print(Text(sentence, style="bold"))
    if beside.sample is not None:
        people.print(cells_table(beside.sample))
    if beside.claims:
        people.print(claims_table(beside.claims, people.width))
    for exhibit in beside.exhibits:
        people.print(exhibit_table(exhibit))
