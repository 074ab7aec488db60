"""A native module whose simulations are invented, for tests of everything above it.

Machines and errors are the real ones; ``simulate`` and its kin answer at once with plausible
numbers. Nothing here was measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sardonyx import _core, cli
from test_report_fixture import invented_document

DESIGNS = ("baseline", "dedup-sha1", "dewrite", "esd")
RUNGS = ("rung-33", "rung-60")


LADDER, SYNTH = _core.ladder, _core.trace_synth


class FakeCore:
    """Stands in for the functions that simulate; ``calls`` holds what was asked for."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.failure: Exception | None = None
        document = invented_document(traces=1, sweeps=False)
        self.runs = {run["design"]: run for run in document["runs"]}
        self.info = document["traces"][0]["info"]

    def simulate(self, job_json: str, progress: Any) -> str:
        if self.failure is not None:
            raise self.failure
        job = json.loads(job_json)
        self.calls.append(job)
        kept = {name: job[name] for name in ("machine", "copies")}
        return json.dumps(self.runs[job["design"]] | kept)

    def trace_info(self, source_json: str, progress: Any) -> str:
        path = json.loads(source_json).get("path")
        if path and Path(path).read_bytes() == b"broken":
            raise _core.SardonyxError(f"{path}: is not a Parquet file; convert it first")
        return json.dumps(self.info)

    def trace_check(self, path: str, max_problems: int, progress: Any) -> str:
        problems = [{"row": 812, "problem": "op 9 is not one of 0-7"}]
        bad = Path(path).read_bytes() == b"broken"
        found = problems if bad else []
        return json.dumps(
            {"records": 1000, "bad": int(bad), "problems": found, "checksums": "pages"}
        )

    def trace_convert(self, conversion_json: str, progress: Any) -> str:
        self.calls.append(json.loads(conversion_json))
        return json.dumps({"records": 10})

    def trace_synth(self, spec_json: str, dst: str, seed: int, progress: Any) -> str:
        self.calls.append({"spec": json.loads(spec_json), "seed": seed})
        return json.dumps({"records": json.loads(spec_json)["records"]})

    def trace_cut(self, src: str, dst: str, skip: int, limit: int | None, progress: Any) -> str:
        self.calls.append({"skip": skip, "limit": limit})
        return json.dumps({"records": limit})

    def ladder(self) -> str:
        return json.dumps([{"name": name, "records": 500_000} for name in RUNGS])

    def designs(self) -> str:
        return json.dumps([{"name": n, "source": "invented", "line": "a line"} for n in DESIGNS])


@dataclass
class Ended:
    status: int
    out: str
    err: str


Program = Callable[..., Ended]


@pytest.fixture
def sardonyx(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Program:
    """Run the program in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["sardonyx", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        status = end.value.code
        assert isinstance(status, int)
        return Ended(status, captured.out, captured.err)

    return run


def bad_input(ended: Ended, *words: str) -> None:
    assert ended.status == 2, ended.out + ended.err
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1, f"more than one line: {ended.err}"
    assert "Traceback" not in ended.err
    assert ended.out == ""
    for word in words:
        assert word in ended.err, ended.err


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """The native module with its simulating half replaced."""
    fake = FakeCore()
    for name in (
        "simulate",
        "trace_info",
        "trace_check",
        "trace_convert",
        "trace_synth",
        "trace_cut",
        "ladder",
        "designs",
    ):
        monkeypatch.setattr(_core, name, getattr(fake, name), raising=False)
    return fake


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A file that passes for a trace."""
    path = tmp_path / "app.parquet"
    rung = json.loads(LADDER())[0]
    SYNTH(json.dumps(rung | {"records": 200}), str(path), 1, None)
    return str(path)
