"""What deduplication and counters save or cost over phase-change memory alone, and with DRAM
before it, a cache of 1, 4 and 16 % of a recording's lines: ``research/near.tsv``.

    python research/near.py [--jobs N]

A row is a recording, a share and a figure: ESD by its baseline, and ``sca`` by no encryption.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import sardonyx

ROOT = Path(__file__).parents[1]
TRACES = sorted((ROOT / "traces").glob("*.parquet"))
SHARES = (0, 1, 4, 16)
PAIRS = (("esd", "baseline", "esd"), ("sca", "no-encryption", "sca"))
FIGURES = ("ipc", "mean_read_latency_ns", "mean_write_latency_ns", "energy_nj", "medium_writes")
#: Whether more of a figure is better.
MORE = {"ipc"}


def lines_of(trace: Path) -> int:
    """The lines that a trace touches."""
    table = pq.read_table(trace, columns=["op", "line"])
    touched = table.filter(pc.less_equal(table["op"], 3))
    return int(pc.count_distinct(touched["line"]).as_py())


def measured(trace: Path, share: int, jobs: int) -> list[tuple[str, int, str, str, float]]:
    """The ratios of each pair on a trace, with a cache of so many hundredths of its lines."""
    near = {"near": "ddr4-2400"} if share else {}
    keys = {"near.lines": max(1, lines_of(trace) * share // 100)} if share else {}
    rows = []
    for machine, than, design in PAIRS:
        runs = sardonyx.compare(
            trace, [than, design], machine, set=keys, warmup="50%", jobs=jobs, **near
        ).runs
        of = {run.design: run.metrics for run in runs}
        for figure in FIGURES:
            ours, theirs = of[design][figure], of[than][figure]
            if ours is not None and theirs:
                rows.append((trace.stem, share, f"{design} by {than}", figure, ours / theirs))
        hit = of[design].get("near_hit_rate")
        if hit is not None:
            rows.append((trace.stem, share, design, "near_hit_rate", hit))
    return rows


def main() -> None:
    """Measure, write all rows, and print means and how many of the recordings agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    jobs = parser.parse_args().jobs
    rows = [row for trace in TRACES for share in SHARES for row in measured(trace, share, jobs)]
    with (ROOT / "research/near.tsv").open("w", newline="") as out:
        writer = csv.writer(out, delimiter="\t", lineterminator="\n")
        writer.writerow(("trace", "cache_percent", "pair", "figure", "ratio"))
        writer.writerows((*row[:4], f"{row[4]:.4f}") for row in rows)
    kinds = dict.fromkeys((row[2], row[3]) for row in rows)
    for pair, figure in kinds:
        said = []
        for share in SHARES:
            of = [row[4] for row in rows if row[1:4] == (share, pair, figure)]
            if not of:
                continue
            better = sum(ratio > 1 if figure in MORE else ratio < 1 for ratio in of)
            mean = statistics.mean(of) if "rate" in figure else statistics.geometric_mean(of)
            said.append(f"{share} %: {mean:.3f}, better on {better} of {len(of)}")
        print(f"{pair}, {figure}: {'; '.join(said)}", file=sys.stdout)


if __name__ == "__main__":
    main()
