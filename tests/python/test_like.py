"""``synth:like:TRACE:TIMES``: a generated trace with the requests and contents of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sardonyx
from click.testing import CliRunner
from sardonyx import cli

#: What both say of themselves.
SHARES = ("duplicate_rate", "zero_rate")


def info(trace: str) -> dict[str, Any]:
    return dict(sardonyx.trace_info(trace))


@pytest.mark.slow
@pytest.mark.parametrize("recording", ["redis", "sqlite3", "x264"])
def test_it_is_like_its_trace_and_reuse_is_as_far_as_is_asked(recording: str) -> None:
    real, like, far = (
        info(name)
        for name in (
            recording,
            f"synth:like:{recording}",
            f"synth:like:{recording}:8",
        )
    )
    assert like["records"] == real["reads"] + real["writes"] == far["records"]
    for made in (like, far):
        assert made["reads"] / made["records"] == pytest.approx(
            real["reads"] / (real["reads"] + real["writes"]), abs=0.02
        )
        for share in SHARES:
            assert made[share] == pytest.approx(real[share], abs=0.05), share
        assert made["instructions"] == pytest.approx(real["instructions"], rel=0.1)
    # What came back within reach comes back too late, and more lines are touched.
    assert far["footprint_lines"] > like["footprint_lines"]


def test_it_is_a_trace_like_any_other(tmp_path: Path) -> None:
    name = "synth:like:redis:4:1500:7"
    results = sardonyx.compare([name, "mix:synth:like:cc1:2:500,redis"], "esd", limit=1500)
    assert results[name, "esd"].metrics["requests"] == 1500
    again = sardonyx.compare(name, "esd")
    assert again.runs[0].metrics["energy_nj"] == results[name, "esd"].metrics["energy_nj"]
    other = sardonyx.compare("synth:like:redis:4:1500:8", "esd")
    assert other.runs[0].metrics["energy_nj"] != again.runs[0].metrics["energy_nj"]
    seeded = sardonyx.compare("synth:like:redis:2:500", "esd", seeds=2)
    assert seeded.runs[0].seeds is not None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("synth:like", "is not of the form synth:like:TRACE"),
        ("synth:like:redis:x", "is not of the form synth:like:TRACE"),
        ("synth:like:redis:0", "is not of the form synth:like:TRACE"),
        ("synth:like:rediss:2", "did you mean redis?"),
    ],
)
def test_bad_input_is_one_line(name: str, said: str) -> None:
    ended = CliRunner().invoke(cli.app, ["compare", name])
    assert ended.exit_code == 2, ended.output
    assert said in ended.stderr and ended.stderr.count("\n") == 1
