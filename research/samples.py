"""Hold samples against whole runs: do 95 % intervals hold the truth, and how much faster is it?

``python research/samples.py [TRACE..] [--designs D,..] [--sample 30x5000] [--seeds 4]`` runs each
trace under each design whole and as samples, one at a time, and says how many intervals of which
figure hold the whole run's figure, how wide they are, and how long both took.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from sardonyx import _core, api
from sardonyx.questions import ProgramSource
from sardonyx.runs.jobs import Point, Settings, parse_sample, parse_warmup
from sardonyx.runs.results import Run

ROOT = Path(__file__).parents[1]
TRACES = ["cc1", "redis", "sqlite3", "stockfish"]
#: Figures that are held against the whole run's; with True they are amounts of a window.
FIGURES = {
    "mean_write_latency_ns": False,
    "mean_read_latency_ns": False,
    "ipc": False,
    "energy_nj": True,
    "medium_writes": True,
    "medium_reads": True,
    "simulated_ns": True,
}


def of_a_request(run: Run, name: str) -> float | None:
    """The figure, amounts for each request."""
    value = run.metric(name)
    if value is None or not FIGURES[name]:
        return value
    return value / (run.metric("requests") or 1)


def answer(point: Point, settings: Settings) -> tuple[Run, float, dict[str, float]]:
    """One run, the seconds that it took, and half of its intervals."""
    started = time.monotonic()
    told = json.loads(_core.simulate(point.job(settings).model_dump_json(), None))
    taken = time.monotonic() - started
    known = {key: told[key] for key in ("design", "metrics")}
    half_widths = told.get("sample", {}).get("half_widths", {})
    return Run(trace=point.trace, **known, causes={}), taken, half_widths


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("traces", nargs="*")
    asked.add_argument("--designs", default="baseline,esd")
    asked.add_argument("--machine", default="esd")
    asked.add_argument("--sample", default="30x5000")
    asked.add_argument("--warmup", default="20%")
    asked.add_argument("--seeds", type=int, default=4)
    chosen = asked.parse_args()
    traces = chosen.traces or [str(ROOT / f"traces/{name}.parquet") for name in TRACES]
    count, share = parse_warmup(chosen.warmup)
    points = api.points(traces, chosen.designs.split(","), None, ProgramSource())
    held = dict.fromkeys(FIGURES, 0)
    tried = dict.fromkeys(FIGURES, 0)
    print(f"{'trace':<12}{'design':<16}{'whole, s':>9}{'sample, s':>10}{'faster':>8}  missed")
    for point in points:
        whole = Settings(chosen.machine, warmup=count, warmup_share=share)
        truth, slow, _ = answer(point, whole)
        quick, missed = 0.0, []
        for seed in range(chosen.seeds):
            sample = parse_sample(chosen.sample, seed)
            settings = Settings(chosen.machine, warmup=count, warmup_share=share, sample=sample)
            run, took, half_widths = answer(point, settings)
            quick += took / chosen.seeds
            for name in FIGURES:
                true, value = of_a_request(truth, name), of_a_request(run, name)
                if true is None or value is None or name not in half_widths:
                    continue
                half = half_widths[name] / ((run.metric("requests") or 1) if FIGURES[name] else 1)
                tried[name] += 1
                if abs(value - true) <= half:
                    held[name] += 1
                else:
                    missed.append(f"{name} {value / true - 1:+.1%} (±{half / true:.1%})")
        faster = slow / quick
        print(
            f"{point.trace:<12}{point.design:<16}{slow:>9.1f}{quick:>10.1f}{faster:>7.1f}x  "
            f"{', '.join(missed) or 'none'}"
        )
    print()
    for name in FIGURES:
        print(f"{name:<24}{held[name]:>4} of {tried[name]}")
    print(f"{'all':<24}{sum(held.values()):>4} of {sum(tried.values())}")


if __name__ == "__main__":
    main()
