"""An invented results document for the tests of results, tables, reports and reproduction.

Nothing here was measured: the numbers come from a seeded generator and only have plausible sizes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from sardonyx.runs.comparison import Comparison
from sardonyx.runs.results import Results

DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")
SIZES = [65536 << i for i in range(6)]
CAUSES = ("ingress", "fingerprint", "lookup", "compare", "counter", "mapping", "encryption", "data")
LABELS = ("1", "2-10", "11-100", "101-1000", ">1000")

_FACTOR = {"baseline": 1.0, "dedup-sha1": 1.25, "dewrite": 0.8, "esd": 0.55}
_WEIGHTS = {
    "baseline": (2, 0, 0, 0, 1, 0, 2, 9),
    "dedup-sha1": (2, 20, 5, 0, 1, 2, 1, 3),
    "dewrite": (2, 3, 5, 3, 1, 2, 1, 5),
    "esd": (2, 0, 0.2, 4, 1, 2, 1, 6),
}


def compared(document: object) -> Comparison:
    """What a document comes to."""
    return Comparison(Results.from_document(document))


def invented_document(traces: int = 20, sweeps: bool = True) -> dict[str, Any]:
    """A document of this many traces under four designs, with the sweeps of ESD Fig. 18."""
    rng = random.Random(18)
    names = [f"invented-{chr(97 + i)}" for i in range(traces)]
    runs: list[dict[str, Any]] = []
    for name in names:
        duplicates = 0.2 + 0.75 * rng.random()
        runs += [_run(rng, name, design, duplicates) for design in DESIGNS]
        if sweeps:
            runs += _sweeps(rng, name)
    return {
        "sardonyx": "0.0-test",
        "machine": {
            "name": "invented",
            "source": "a test fixture",
            "parameters": {"medium.read_ns": 75, "medium.write_ns": 150, "esd.policy": "lrcu"},
            "assumed": [
                {"parameter": "units.aes.energy_nj", "value": 5.9, "why": "no source gives it"},
                {"parameter": "units.crc32.latency_ns", "value": 15, "why": "read off a figure"},
            ],
        },
        "traces": [_trace(rng, name) for name in names],
        "runs": runs,
    }


def _run(rng: random.Random, trace: str, design: str, duplicates: float) -> dict[str, Any]:
    writes, reads = 300_000, 600_000
    base = 250 + 500 * random.Random(trace).random()
    write_ns = base * _FACTOR[design] * (0.8 + 0.4 * rng.random()) * (1.2 - 0.5 * duplicates)
    read_ns = 0.6 * base * _FACTOR[design] ** 0.7 * (0.9 + 0.2 * rng.random())
    saved = {"baseline": 0.0, "dedup-sha1": duplicates, "dewrite": 0.99 * duplicates}.get(
        design, 0.78 * duplicates
    )
    metrics: dict[str, float | None] = {
        "requests": writes + reads,
        "reads": reads,
        "writes": writes,
        "data_writes": round(writes * (1 - saved)),
        "medium_writes": round(writes * (1.1 - saved)),
        "write_reduction": saved,
        "mean_write_latency_ns": write_ns,
        "mean_read_latency_ns": read_ns,
        "p50_write_latency_ns": 0.7 * write_ns,
        "p95_write_latency_ns": 2.5 * write_ns,
        "p99_write_latency_ns": 4 * write_ns,
        "p999_write_latency_ns": 8 * write_ns,
        "ipc": 1.6 / _FACTOR[design] ** 0.4 * (0.9 + 0.2 * rng.random()),
        "energy_nj": 4e6 * (1.3 - saved) * (1.3 if design == "dedup-sha1" else 1.0),
        "metadata_bytes": {"baseline": None, "dedup-sha1": 34e5, "dewrite": 16.4e5}.get(
            design, 6.4e5
        ),
        "metadata_bytes_per_line": {"baseline": None, "dedup-sha1": 34, "dewrite": 16.375}.get(
            design, 6.4
        ),
        "metadata_bytes_in_use": {"baseline": None, "dedup-sha1": 20e5, "dewrite": 11e5}.get(
            design, 5.5e5
        ),
        "max_line_writes": rng.randrange(50, 5000),
        "bits_flipped": round(220 * writes * (1.1 - saved)),
        "lifetime_ideal_years": 20 / (1.1 - saved),
        "lifetime_none_years": 1e-3 * rng.random(),
    }
    if design == "esd":
        metrics |= {"efit_hit_rate": 0.55, "amt_hit_rate": 0.9}
    if design in ("dedup-sha1", "dewrite"):
        metrics |= {
            "duplicates_found_in_cache": round(writes * saved * 0.79),
            "duplicates_found_in_medium": round(writes * saved * 0.21),
        }
    if design == "dewrite":
        right = 0.92
        metrics |= {
            "prediction_t1": round(writes * duplicates * right),
            "prediction_f2": round(writes * (1 - duplicates) * (1 - right)),
            "prediction_t3": round(writes * (1 - duplicates) * right),
            "prediction_f4": round(writes * duplicates * (1 - right)),
        }
    total = write_ns * writes
    weights = _WEIGHTS[design]
    causes = {
        cause: {
            "latency_ns": total * weight / sum(weights) + 1e6,
            "write_latency_ns": total * weight / sum(weights),
            "read_latency_ns": 1e6,
            "wait_ns": 0,
            "energy_nj": 1e5,
            "medium_reads": 0,
            "medium_writes": 0,
        }
        for cause, weight in zip(CAUSES, weights, strict=True)
        if weight
    }
    assumed = [] if design == "baseline" else ["units.aes.energy_nj", "units.crc32.latency_ns"]
    return {
        "trace": trace,
        "design": design,
        "machine": "invented",
        "copies": 1,
        "variant": {},
        "metrics": metrics,
        "causes": causes,
        "write_latency_cdf": _cdf(write_ns),
        "read_latency_cdf": _cdf(read_ns),
        "assumed": assumed,
        "epochs": _epochs(random.Random(trace + design), design),
        "usage": _usage(random.Random(trace + design)),
    }


def _epochs(rng: random.Random, design: str) -> dict[str, Any]:
    """Some columns of 100 epochs, one of them with nothing to measure."""
    names = ["request_gb_per_s", "p99_write_latency_ns", "p99_read_latency_ns", "row_hit_rate"]
    names += ["mean_read_latency_ns", "mean_write_latency_ns", "write_queue", "read_queue"]
    names += ["amt_hit_rate", "efit_hit_rate"] if design == "esd" else []
    columns: dict[str, list[float | None]] = {
        name: [rng.random() * (1 if name.endswith("rate") else 900) for _ in range(100)]
        for name in names
    }
    columns["p99_read_latency_ns"][7] = None
    return {"begin_ns": 0.0, "width_ns": 1048.576 * 2**9, "columns": columns}


def _usage(rng: random.Random) -> dict[str, Any]:
    return {
        "banks": [rng.random() for _ in range(16)],
        "buses": [0.1],
        "read_queues": 0.2,
        "write_queues": 0.9,
        "units": [{"name": "aes", "uses": 1000, "share": 0.4}],
        "worn": [
            {"least": 1, "lines": 900, "writes": 900},
            {"least": 2, "lines": 100, "writes": 250},
            {"least": 4, "lines": 0, "writes": 0},
            {"least": 8, "lines": 10, "writes": 90},
        ],
        "map": [
            {"region": "data", "first": at << 12, "lines": 20, "writes": 20 + at, "most": 8}
            for at in range(50)
        ],
    }


def _cdf(mean_ns: float) -> list[list[float]]:
    """A log-normal distribution about this mean, cut at its 0.9999 quantile."""
    points = []
    for step in range(1, 400):
        ns = mean_ns * 10 ** (-1.2 + 2.4 * step / 400)
        points.append([ns, 0.5 * (1 + math.erf(math.log(ns / (0.8 * mean_ns)) / 0.9))])
    return [*points, [mean_ns * 20, 1.0]]


def _sweeps(rng: random.Random, trace: str) -> list[dict[str, Any]]:
    points = []
    lift = 0.1 * rng.random()
    for index, size in enumerate(SIZES):
        for policy, extra in (("lrcu", 0.04), ("lru", 0.0)):
            hit = 0.6 + lift + extra - 0.4 * 2 ** (-index)
            points.append(({"esd.efit_bytes": size, "esd.policy": policy}, {"efit_hit_rate": hit}))
        points.append(
            ({"esd.amt_bytes": size}, {"amt_hit_rate": 0.95 + lift / 3 - 0.3 * 2**-index})
        )
    return [
        {
            "trace": trace,
            "design": "esd",
            "machine": "invented",
            "copies": 1,
            "variant": variant,
            "metrics": metrics,
            "causes": {},
            "assumed": [],
        }
        for variant, metrics in points
    ]


def paced(write: float, read: float, ipc: float, energy: float) -> dict[str, Any]:
    """Mean latencies, instructions per cycle and energy of a run."""
    latencies = {"mean_write_latency_ns": write, "mean_read_latency_ns": read}
    return latencies | {"ipc": ipc, "energy_nj": energy}


def locality(
    labels: Sequence[str], contents: Sequence[int], writes: Sequence[int]
) -> list[dict[str, Any]]:
    """How often contents come, as ``trace info`` has it."""
    return [
        {
            "times": times,
            "contents": c,
            "contents_share": c / sum(contents),
            "writes": w,
            "writes_share": w / sum(writes),
        }
        for times, c, w in zip(labels, contents, writes, strict=True)
    ]


def _trace(rng: random.Random, name: str) -> dict[str, Any]:
    contents = [40_000, 9_000, 1_500, 200, 30]
    writes = [40_000, 36_000, 50_000, 60_000, 114_000]
    codes = ("crc-32", "truncated-hamming", "hsiao-opentitan", "hsiao-1970")
    rates = [0.0 if rng.random() < 0.4 else 1e-5 * rng.random() for _ in codes[:1]]
    rates += [1e-3 * rng.random() for _ in codes[1:]]
    return {
        "name": name,
        "info": {
            "records": 900_000,
            "reads": 600_000,
            "writes": 300_000,
            "footprint_lines": 50_000,
            "distinct_contents": 50_000,
            "duplicate_rate": 0.33 + 0.66 * rng.random(),
            "burst_write_share": 0.01,
            "footprint_bytes": 5 << 20,
            "zero_rate": 0.1 * rng.random(),
            "silent_write_rate": 0.05,
            "locality": locality(LABELS, contents, writes),
            "collisions": [
                {
                    "fingerprint": code,
                    "contents": round(50_000 * rate),
                    "writes": round(60_000 * rate),
                    "writes_share": round(60_000 * rate) / 300_000,
                    "contents_to_crc32": rate / rates[0] if rates[0] else None,
                    "writes_to_crc32": rate / rates[0] if rates[0] else None,
                }
                for code, rate in zip(codes, rates, strict=True)
            ],
            "provenance": {"program": "none: a test fixture"},
        },
    }


def test_the_invented_document_says_that_it_is_one() -> None:
    document = invented_document(2)
    assert document["machine"]["source"] == "a test fixture"
    assert {run["trace"] for run in document["runs"]} == {"invented-a", "invented-b"}
