"""``trace synth``: a trace with stated statistics."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from sardonyx import _core
from sardonyx.files import FileError, is_special, read_text
from sardonyx.questions import TraceSynth
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import unknown
from sardonyx.traces.facts import Facts, tell, writable, written

__all__ = ["answer", "tell"]


def answer(asked: TraceSynth, watch: Watch | None) -> Facts:
    """What was written."""
    writable(asked.target, [asked.spec])
    stated = _spec(asked.spec)
    if asked.records is not None:
        stated["records"] = asked.records
    call = partial(_core.trace_synth, json.dumps(stated), str(asked.target), asked.seed)
    return written("trace synth", asked.target, [asked.spec], call, watch)


def _spec(name: str) -> dict[str, Any]:
    rungs: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in json.loads(_core.ladder())}
    if name in rungs:
        return rungs[name]
    if not Path(name).is_file() and (not name.endswith(".json") or is_special(name)):
        raise _core.SardonyxError(f"{unknown('generator', name, list(rungs))}, or a JSON file")
    try:
        stated = json.loads(read_text(name))
    except FileError:
        raise
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or nested without end
        raise _core.SardonyxError(f"{name}: is not JSON ({error}); mend it") from error
    if not isinstance(stated, dict):
        raise _core.SardonyxError(f"{name}: is not an object; see docs/simulator/trace-format.md")
    return stated
