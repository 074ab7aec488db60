"""``compare --threads``: a core for each thread of a recording, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sardonyx import SardonyxError, compare
from sardonyx.runs.results import Results
from test_cli_fixture import Program, bad_input

TRACE = "sort-threads"


def test_each_thread_has_a_core(sardonyx: Program, tmp_path: Path) -> None:
    words = ("compare", TRACE, "--designs", "baseline,esd", "--limit", "3000", "--out")
    done = sardonyx(*words, "out", "--threads", "--copies", "2", "--notes")
    assert done.status == 0, done.err
    run = Results.load(tmp_path / "out").runs[0]
    assert run.threads and run.threads > 1 and run.cores == 2 * run.threads
    told = " ".join(done.out.split())
    assert f"{run.cores} cores ran each trace, a core for each thread." in told
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert document["runs"][0]["threads"] == run.threads
    assert Results.from_document(document).runs[0] == run
    # The requests and instructions of two copies on one core each, in less time.
    plain = compare(TRACE, "baseline", limit=3000, copies=2)["sort-threads", "baseline"]
    for name in ("reads", "writes", "instructions"):
        assert run.metric(name) == plain.metric(name)
    (fast, slow) = (run.metric("simulated_ns"), plain.metric("simulated_ns"))
    assert fast and slow and fast < slow
    assert plain.threads is None and plain.cores == 2


def test_it_is_the_same_again_and_from_python(tmp_path: Path) -> None:
    one, two = (compare(TRACE, "esd", limit=2000, threads=True).runs[0] for _ in range(2))
    for run in (one, two):
        run.metrics.pop("requests_per_second")
    assert one == two and one.threads


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sqlite3",), "sqlite3 has one thread"),
        (("synth:rung-60",), "is generated, and has no threads"),
        (("btree",), "btree is no recording"),
        (("mix:redis,cc1",), "a mix plays each trace on one core"),
        ((TRACE, "--sample", "20x100"), "plays whole runs, and --sample times windows"),
        ((TRACE, "--copies", "1000"), "are more than 1024 cores; give fewer --copies"),
        ((TRACE, "--arrivals", "open"), "counts instructions, and has no arrivals at memory"),
    ],
)
def test_what_has_no_threads_is_refused(
    sardonyx: Program, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    bad_input(sardonyx("compare", *words, "--threads"), said)
    assert list(tmp_path.iterdir()) == []


def test_python_refuses_it_too() -> None:
    with pytest.raises(SardonyxError, match="sqlite3 has one thread; leave threads out"):
        compare("sqlite3", "esd", threads=True)


def test_a_sweep_has_them_too(sardonyx: Program, tmp_path: Path) -> None:
    sweep = f'[sweep]\ntraces = ["{TRACE}"]\ndesigns = ["esd"]\nlimit = 2000\n'
    (tmp_path / "s.toml").write_text(f"{sweep}[axes]\nthreads = [true, false]\n")
    done = sardonyx("sweep", "s.toml", "--out", "out")
    assert done.status == 0, done.err
    rows = pq.read_table(tmp_path / "out/results.parquet").to_pylist()
    found = {row["threads"]: row["ipc"] for row in rows}
    run = compare(TRACE, "esd", limit=2000, threads=True).runs[0]
    assert found[True] == run.metric("ipc") != found[False]
