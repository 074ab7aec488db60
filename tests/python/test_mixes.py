"""Mixes: a trace on each core, and what each loses to the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import sardonyx
from click.testing import CliRunner
from sardonyx import cli

MIX = "mix:redis,cc1,synth:rung-60"


def test_slowdowns_are_beside_each_trace_alone(tmp_path: Path) -> None:
    results = sardonyx.compare([MIX, "redis"], ["baseline", "esd"], limit=800)
    for design in ("baseline", "esd"):
        run = results[MIX, design]
        assert run.mix is not None
        assert [one.trace for one in run.mix] == ["redis", "cc1", "rung-60"]
        # What runs alone is the plain run of one core.
        assert run.mix[0].alone == results["redis", design].metrics["ipc"]
        slowdowns = [one.slowdown for one in run.mix]
        assert all(slowdown and slowdown >= 0.999 for slowdown in slowdowns)
        known = [slowdown for slowdown in slowdowns if slowdown]
        assert run.metrics["weighted_speedup"] == pytest.approx(sum(1 / one for one in known))
        assert run.metrics["max_slowdown"] == max(known)
        assert run.metrics["fairness"] == min(known) / max(known)
        assert results["redis", design].mix is None
    # As many requests as all of them have.
    alone = [sardonyx.compare(one, "esd", limit=800) for one in MIX[4:].split(",")]
    requests = sum(one.runs[0].metrics["requests"] or 0 for one in alone)
    assert results[MIX, "esd"].metrics["requests"] == requests
    again = sardonyx.Results.from_document(results.to_document())
    assert again[MIX, "esd"].mix == results[MIX, "esd"].mix
    results.report(tmp_path / "r.html")


def test_a_trace_beside_one_of_no_requests_is_as_fast_as_alone() -> None:
    results = sardonyx.compare("mix:cc1,synth:rung-60:1", "esd", limit=500)
    mix = results.runs[0].mix
    assert mix is not None and mix[0].slowdown == pytest.approx(1, abs=0.01)


def test_copies_of_one_trace_lose_alike() -> None:
    results = sardonyx.compare("mix:redis,redis", "sca", limit=500)
    mix = results.runs[0].mix
    assert mix is not None and mix[0].ipc == pytest.approx(mix[1].ipc, rel=0.05)
    # And their contents are duplicates of each other.
    both = sardonyx.compare("mix:redis,redis", "esd", limit=500).runs[0]
    one = sardonyx.compare("redis", "esd", limit=500).runs[0]
    assert (both.metrics["write_reduction"] or 0) > (one.metrics["write_reduction"] or 0)


def test_the_command_says_what_each_loses(tmp_path: Path) -> None:
    words = ["compare", "mix:redis,cc1", "--designs", "esd", "--limit", "500"]
    ended = CliRunner().invoke(cli.app, [*words, "--out", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    assert "weighted speed-up" in ended.output and "slowdown of each" in ended.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compare", "mix:redis"), "is not of the form mix:TRACE,TRACE,..; name two traces"),
        (("compare", "mix:redis,mix:cc1"), "is not of the form mix:"),
        (("compare", "mix:redis,rediss"), "did you mean redis?"),
        (("compare", "mix:redis,cc1", "--seeds", "3"), "no seed"),
        (("compare", "mix:redis,cc1", "--sensitivity"), "runs as a whole; name its traces"),
        (("compare", "mix:redis,cc1", "--sample", "30x10"), "a mix runs as a whole"),
        (("explore", "mix:redis,cc1"), "runs as a whole; name its traces"),
        (("trace", "info", "mix:redis,cc1"), "runs as a whole; name its traces"),
    ],
)
def test_what_a_mix_cannot_be_is_one_line(
    tmp_path: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(cli.app, list(words))
    assert ended.exit_code == 2, ended.output
    assert said in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
    assert list(tmp_path.iterdir()) == []
