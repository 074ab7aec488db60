"""``compare --sample``: windows in time, intervals beside the figures, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sardonyx import SardonyxError, compare
from sardonyx.runs.results import Results
from test_cli_fixture import Program, bad_input

TRACE = "synth:rung-60:60000"


def compared(sardonyx: Program, tmp_path: Path, *words: str) -> Results:
    done = sardonyx("compare", TRACE, "--designs", "baseline,esd", "--out", "out", *words)
    assert done.status == 0, done.err
    return Results.load(tmp_path / "out")


def test_a_sample_is_beside_the_whole_run(sardonyx: Program, tmp_path: Path) -> None:
    sampled = compared(sardonyx, tmp_path, "--sample", "20x1000+500", "--warmup", "10%")
    whole = compared(sardonyx, tmp_path, "--warmup", "10%")
    for run, other in zip(sampled.runs, whole.runs, strict=True):
        sample = run.sample
        assert sample is not None and other.sample is None
        assert (sample.windows, sample.requests, sample.ramp) == (20, 1000, 500)
        assert (sample.timed, sample.of) == (20 * 1756, 60_000)
        assert run.metric("requests") == 1000
        for name in ("mean_write_latency_ns", "mean_read_latency_ns", "ipc"):
            value, true = run.metric(name), other.metric(name)
            assert value and true
            assert abs(value - true) < 3 * sample.half_widths[name], name
        assert "max_line_writes" not in run.metrics
    again = compared(sardonyx, tmp_path, "--sample", "20x1000+500", "--warmup", "10%")
    assert [run.metric("ipc") for run in again.runs] == [run.metric("ipc") for run in sampled.runs]
    document = json.loads((tmp_path / "out/results.json").read_text())
    assert "sample" in document["runs"][0]


def test_the_table_says_how_sure_it_is(sardonyx: Program) -> None:
    done = sardonyx("compare", TRACE, "--designs", "esd", "--sample", "20x1000", "--out", "out")
    assert "20 windows of 1,000 requests" in " ".join(done.out.split())
    assert "±" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((TRACE, "--sample", "20"), "WINDOWSxREQUESTS"),
        ((TRACE, "--sample", "5x1000"), "10 windows or more"),
        ((TRACE, "--sample", "20x0"), "10 windows or more"),
        ((TRACE, "--sample", "100x1000"), "are more than its 60000"),
        ((TRACE, "--sample", "20x1000", "--warmup", "99%"), "are more than its 600"),
        ((TRACE, "--sample", "20x1000", "--sensitivity"), "--sensitivity: is of whole runs"),
        (("btree", "--sample", "20x1000"), "--sample"),
        ((TRACE, "btree", "--sample", "20x1000"), "is a program"),
    ],
)
def test_what_cannot_be_sampled_is_refused(
    sardonyx: Program, words: tuple[str, ...], said: str
) -> None:
    bad_input(sardonyx("compare", *words, "--designs", "esd,baseline"), said)


def test_from_python_it_is_the_same(sardonyx: Program, tmp_path: Path) -> None:
    theirs = compared(sardonyx, tmp_path, "--sample", "10x200+100", "--seed", "3")
    ours = compare(TRACE, ["baseline", "esd"], sample="10x200+100", seed=3)
    assert [run.sample for run in ours] == [run.sample for run in theirs]
    assert [run.metric("ipc") for run in ours] == [run.metric("ipc") for run in theirs]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sample": 20}, "^sample 20: is not WINDOWSxREQUESTS"),
        ({"sample": "20"}, "^sample 20: is not WINDOWSxREQUESTS"),
        ({"sample": "20x1000", "sensitivity": True}, "^sensitivity: is of whole runs, and sample"),
        ({"sample": "20x1000", "requests": "r.parquet"}, "^requests: is of whole runs"),
        ({"sample": "20x1000", "seeds": 2}, "^sample: is of single runs, and seeds gives means"),
    ],
)
def test_from_python_what_cannot_be_sampled_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(SardonyxError, match=said):
        compare(TRACE, **asked)
