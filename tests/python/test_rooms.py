"""The rooms of the package: who may import whom, and what crosses to the native module."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
import sardonyx
from sardonyx import _core
from sardonyx.known import COMMANDS
from sardonyx.questions import CrashQuestion, Job, ProgramSource, SynthSource, TraceSource
from sardonyx.runs.sources import named
from sardonyx.values import read

PACKAGE = Path(sardonyx.__file__).parent
#: Each room may import those before it.
ROOMS = (
    "runs", "sweeps", "vary", "draw", "papers", "studies", "report", "api", "simulator", "tracing",
    "merging", "crashes", "crash_tests", "stores", "cli",
)  # fmt: skip


def imported(path: Path) -> set[str]:
    """The modules of this package that a file imports, as ``room`` or ``room.module``."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sardonyx"):
            inner = (node.module or "").removeprefix("sardonyx").lstrip(".")
            found |= {inner} if inner else {alias.name for alias in node.names}
    return {name.split(".")[0] for name in found}


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_imports_a_later_one(room: str) -> None:
    later = set(ROOMS[ROOMS.index(room) + 1 :]) | set()
    for path in (PACKAGE / room).rglob("*.py"):
        assert not imported(path) & later, path


def test_the_public_functions_import_no_paper() -> None:
    for path in (PACKAGE / "api").glob("*.py"):
        assert not imported(path) & {"papers", "studies", "report", "cli"}


def test_a_command_is_imported_when_it_is_called() -> None:
    said = "import sys; from sardonyx import cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True).stdout
    assert "sardonyx.cli.common" in loaded.split()
    slow = {"pydantic", "pandas", "pyarrow", "plotly", "jinja2"}
    slow |= {f"sardonyx.{line.module}" for line in COMMANDS.values()}
    assert not slow & set(loaded.split())


def test_sources_are_values_that_survive_the_border() -> None:
    program = ProgramSource(item_bytes=128)
    sources = named(["a/x.parquet", "synth:rung-60:7:3", "btree"], 9, program)
    assert sources == {
        "x": TraceSource(path="a/x.parquet", limit=9),
        "synth:rung-60:7:3": SynthSource(name="rung-60", records=7, seed=3, limit=9),
        "btree": ProgramSource(name="btree", item_bytes=128),
    }
    for source in sources.values():
        job = Job(source=source, design="esd", machine="esd", overrides=(("a", "1"),))
        again = read(Job, json.loads(job.json()))
        assert again == job and hash(again) == hash(job)


def test_the_native_side_refuses_what_it_does_not_know() -> None:
    job = Job(source=ProgramSource(name="btree"), design="sca", machine="sca").document()
    _core.check_job(json.dumps(job))
    with pytest.raises(_core.SardonyxError, match="unknown field `warm_up`"):
        _core.check_job(json.dumps(job | {"warm_up": 1}))
    trace = TraceSource(path="a").document() | {"skip": 1}
    with pytest.raises(_core.SardonyxError, match="unknown field `skip`"):
        _core.trace_info(json.dumps(trace), None)
    question = CrashQuestion(program=ProgramSource(name="btree"), design="sca", machine="sca")
    with pytest.raises(_core.SardonyxError, match="unknown field `platforms`"):
        _core.crash(json.dumps(question.document() | {"platforms": "adr"}), None)
