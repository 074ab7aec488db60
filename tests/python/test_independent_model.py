"""The simulator against models that share nothing with it: counts and energies, to the digit."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sardonyx
from independent_model import UNTIMED, Figures, Machine, Record, Table, esd, identity, read_trace
from independent_program import Request, program, setup_lines
from sardonyx.runs.results import Run

TRACES = Path(__file__).parents[2] / "traces"
MACHINES = {
    "Table I": Machine(),
    "small sets": Machine(Table(65536, 8), Table(12800, 8), Table(14 * 8 * 64, 8)),
    "one set": Machine(Table(65536, 1024), Table(12800, 200), Table(14 * 1024, 1024)),
    "low limits": Machine(
        Table(65536, 1024), Table(12800, 200), Table(14 * 1024, 1024), 4, refresh_every=1000
    ),
}
#: Designs that deduplicate, and whether they keep lines to compare on chip.
ESD = {"esd": False, "fsdedup": True}
POLICIES = {
    "baseline": "per-line",
    "no-encryption": "no-encryption",
    "sca": "sca",
    "fca": "fca",
    "co-located": "co-located",
}
PROGRAMS = ("array-swap", "queue", "hash", "btree", "rbtree")
#: What models and simulator give, beside reads, writes and energy of each cause.
METRICS = (
    "requests",
    "reads",
    "writes",
    "duplicate_writes",
    "write_reduction",
    "data_writes",
    "medium_reads",
    "medium_writes",
    "medium_write_bytes",
    "energy_nj",
    "energy_units_nj",
    "counter_cache_hit_rate",
    "counter_bytes",
    "efit_lookups",
    "efit_hit_rate",
    "prefetch_hit_rate",
    "collisions",
    "saturated_rewrites",
    "leaked_lines",
    "amt_hit_rate",
    "metadata_bytes",
    "metadata_bytes_in_use",
)
SMALL = Machine(
    Table(4096, 4), Table(1280, 4), Table(14 * 32, 4), prefetch=Table(512, 2), prefetch_stored=True
)
LIMITS = Machine(
    Table(4096, 64),
    Table(1280, 20),
    Table(14 * 32, 32),
    5,
    refresh_every=50,
    prefetch=Table(256, 4),
)
#: Choices that the models do not make.
OTHERS = {
    "esd.collision": "replace",
    "esd.reclaim": "paper",
    "esd.forget": "on-compare",
    "places.reuse": "lifo",
    "places.fresh": "log",
    "esd.matrix": "hsiao-1970",
    "memory.past": "empty",
    "energy.pad": "stored-writes",
    "esd.amt_policy": "lrcu",
    "metadata.sets": "hashed",
}
#: Below this an energy is the remainder of a difference.
NOTHING = 1e-9
#: A clock cycle of the memory of ``sca``, in ps, and what a read of a closed row and of an open one
#: takes of them: tRCD + tCL + tBURST + off_chip (SCA Table 2; timing.md, "Completion").
CLOCK, CLOSED, OPEN = 1876, 26 + 8 + 4 + 10, 8 + 4 + 10
PAD = 40_000


def simulated(run: Run, *more: str) -> Figures:
    """The figures of a run that models give as well, but for zeros."""
    figures = {name: run.metrics.get(name) or 0 for name in (*METRICS, *more)}
    for cause, of in run.causes.items():
        for kind in ("medium_reads", "medium_writes", "energy_nj"):
            figures[f"{cause}.{kind}"] = getattr(of, kind)
    return {name: number for name, number in figures.items() if abs(number) > NOTHING}


def agree(run: Run, predicted: Mapping[str, float], *more: str) -> int:
    """Every figure of a run is the predicted one; how many they are."""
    ours = {name: number for name, number in predicted.items() if number}
    assert simulated(run, *more) == pytest.approx(ours, rel=1e-12, abs=0)
    return len(ours)


def asks_of_the_medium(run: Run, predicted: Mapping[str, float]) -> None:
    """What the medium did and what its queue has taken off it are together what is predicted."""
    for kind in ("medium_read", "medium_write"):
        done = sum(run.metrics[name] or 0 for name in (f"{kind}s", f"{kind}_short_cuts"))
        assert done == predicted[f"{kind}s"], (run.design, kind)


@cache
def records(trace: Path, limit: int) -> list[Record]:
    """The first records of a trace."""
    return read_trace(trace, limit)


def check_trace(trace: Path, limit: int, machine: Machine) -> int:
    """ESD, FSDedup, their baseline and SCA's policies on a trace: how many figures agree."""
    runs = sardonyx.compare(trace, [*ESD, *POLICIES], set=machine.keys(), limit=limit, jobs=1).runs
    number = sum(agree(run, predict(run.design, records(trace, limit), machine)) for run in runs)
    print(f"{trace.stem}: {number} figures agree")
    return number


def predict(design: str, first: list[Record], machine: Machine) -> Figures:
    """The model of a design, on the first records of a trace."""
    if design in ESD:
        return esd(first, machine, ESD[design])
    return identity(first, POLICIES[design], machine)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["redis", "x264", "sqlite3"])
def test_each_count_and_energy_of_a_recording_follows_from_the_papers(
    name: str, machine: str
) -> None:
    assert check_trace(TRACES / f"{name}.parquet", 4000, MACHINES[machine]) > 100


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["redis", "x264", "sqlite3", "pmdk-tx", "stockfish", "cc1"])
def test_long_recordings_too(name: str, machine: str) -> None:
    assert check_trace(TRACES / f"{name}.parquet", 60_000, MACHINES[machine]) > 100


def write_trace(path: Path, rows: list[tuple[int, int, int, bytes | None]]) -> None:
    """A trace of rows of gap, operation, line and bytes."""
    columns: dict[str, pa.DataType] = {
        "gap": pa.uint32(),
        "thread": pa.uint16(),
        "op": pa.uint8(),
        "line": pa.uint64(),
        "data": pa.binary(64),
    }
    told = json.dumps({"version": 1, "level": "memory"})
    schema = pa.schema(list(columns.items()), metadata={"sardonyx.trace": told})
    table = [
        {"gap": gap, "thread": 0, "op": op, "line": line, "data": data}
        for gap, op, line, data in rows
    ]
    pq.write_table(pa.Table.from_pylist(table, schema=schema), path, compression="zstd")


def churn(path: Path, seed: int) -> None:
    """Few lines and few contents: places are shared, given up and used again all the time."""
    draw = random.Random(seed)
    lines, contents, stride = (
        draw.choice(each) for each in ([8, 40, 300, 3000], [2, 10, 60, 1000], [1, 7, 64])
    )
    held: dict[int, bytes | None] = {}
    rows = []
    for _ in range(2000):
        line, data = draw.randrange(lines) * stride, draw.randrange(contents).to_bytes(4, "little")
        reads = draw.random() < 0.3
        known = line not in held and draw.random() < 0.6
        if not reads or known:
            held[line] = data * 16
        said = data * 16 if known or not reads else None
        held.setdefault(line, None)
        rows.append((draw.randrange(300), 0 if reads else draw.randint(1, 3), line, said))
    write_trace(path, rows)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_places_and_caches_under_churn(seed: int, tmp_path: Path) -> None:
    churn(tmp_path / "churn.parquet", seed)
    for machine in (SMALL, LIMITS):
        assert check_trace(tmp_path / "churn.parquet", 2000, machine) > 100


def test_any_other_choice_gives_other_figures(tmp_path: Path) -> None:
    trace = tmp_path / "churn.parquet"
    churn(trace, 0)
    ours = predict("esd", records(trace, 2000), SMALL)
    for key, value in OTHERS.items():
        sets = SMALL.keys() | {key: value}
        run = sardonyx.compare(trace, "esd", set=sets, jobs=1).runs[0]
        with pytest.raises(AssertionError, match="approx"):
            agree(run, ours)


def test_merging_and_forwarding_take_the_medium_nothing_else() -> None:
    machine, trace = Machine(), TRACES / "x264.parquet"
    sets = {name: value for name, value in machine.keys().items() if "queues" not in name}
    designs = ("esd", "baseline", "no-encryption")
    for run in sardonyx.compare(trace, designs, set=sets, limit=4000, jobs=1).runs:
        asks_of_the_medium(run, predict(run.design, records(trace, 4000), machine))


def run_program(
    name: str, folder: Path, transactions: int, overrides: Mapping[str, bool | int | str]
) -> list[tuple[Run, list[Request], int]]:
    """Runs of a program under SCA's policies: each with its requests and the lines of its setup."""
    file = folder / "requests.parquet"
    runs = sardonyx.compare(
        name,
        ["no-encryption", "co-located", "fca", "sca"],
        "sca",
        transactions=transactions,
        footprint=256 << 10,
        set=overrides,
        requests=file,
        jobs=1,
    ).runs
    rows = sorted(pq.read_table(file).to_pylist(), key=lambda row: int(row["request"]))
    found = []
    for run in runs:
        asked = [
            Request(row["operation"], row["line"]) for row in rows if row["design"] == run.design
        ]
        counter_bytes = next(each.metrics["counter_bytes"] for each in runs if each.design == "fca")
        assert counter_bytes is not None
        found.append((run, asked, setup_lines(asked, counter_bytes)))
    return found


def check_program(name: str, folder: Path, transactions: int) -> None:
    for run, asked, setup in run_program(name, folder, transactions, UNTIMED):
        ours = program(asked, run.design, setup, Machine())
        if run.design != "no-encryption":
            ours["counter_bytes"] = run.metrics["counter_bytes"] or 0
        number = agree(run, ours, "reads_of_unwritten_lines")
        print(f"{name}, {run.design}: {number} figures agree")
        # Four barriers a transaction and two counter-atomic writes (SCA Fig. 9).
        assert run.metrics["fences"] == 4 * transactions
        taken = {line // 8 for kind, line in asked if kind == "metadata"}
        atomic = [line for kind, line in asked if kind == "write" and line // 8 not in taken]
        assert len(atomic) == 2 * transactions and len(set(atomic)) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_count_of_a_program_follows_from_its_requests(name: str, tmp_path: Path) -> None:
    check_program(name, tmp_path, 60)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_long_programs_too(name: str, tmp_path: Path) -> None:
    check_program(name, tmp_path, 1500)


def test_merging_takes_a_program_s_medium_nothing_else(tmp_path: Path) -> None:
    for run, asked, setup in run_program("btree", tmp_path, 60, {}):
        ours = program(asked, run.design, setup, Machine())
        asks_of_the_medium(run, ours)


@pytest.mark.parametrize(("past", "pad"), [("written", PAD), ("empty", 0)])
def test_a_pad_comes_after_a_line_that_was_written_before(
    past: str, pad: int, tmp_path: Path
) -> None:
    """By hand: the first read opens the row, the second finds it open; counters are beside them.

    A command goes at the clock edge after the request's arrival. ``co-located`` decrypts when the
    line is there (SCA Sec. 3.2.1), in a memory with a past any line (past.md).
    """
    trace, file = tmp_path / "reads.parquet", tmp_path / "requests.parquet"
    write_trace(trace, [(0, 0, 64, None), (4000, 0, 65, None)])
    runs = sardonyx.compare(
        trace,
        ["no-encryption", "co-located"],
        "sca",
        set={"memory.past": past},
        requests=file,
        jobs=1,
    ).runs
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    for run, after in zip(runs, (0, pad), strict=True):
        first, second = sorted(
            (row for row in rows if row["design"] == run.design),
            key=lambda row: int(row["request"]),
        )
        for row, cycles in ((first, CLOSED), (second, OPEN)):
            edge = (row["arrived_ps"] // CLOCK + 1) * CLOCK
            assert row["done_ps"] == edge + cycles * CLOCK + after
            assert row["encryption_ps"] == after
        assert run.metrics["energy_units_nj"] == pytest.approx(2 * 5.9 * (after > 0))
