"""``trace synth``: a trace with stated statistics."""

from __future__ import annotations

import json
import os
from typing import Any

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceSynth
from sardonyx.api.command import ran
from sardonyx.files import FileError, is_special, read_text
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import unknown
from sardonyx.tracing.facts import check_new
from sardonyx.tracing.facts import tell as tell


def answer(asked: TraceSynth, watch: Watch | None) -> Answer:
    """What is in the new trace."""
    target = str(asked.target)
    check_new(asked.target, [asked.spec])
    stated = _spec(asked.spec)
    if asked.records is not None:
        stated["records"] = asked.records
    found = ran(
        asked.spec,
        lambda progress: _core.trace_synth(json.dumps(stated), target, asked.seed, progress),
        watch,
    )
    return Answer("trace synth", found, shown=target)


def _spec(name: str) -> dict[str, Any]:
    rungs: dict[str, dict[str, Any]] = {rung["name"]: rung for rung in json.loads(_core.ladder())}
    if name in rungs:
        return rungs[name]
    if not os.path.isfile(name) and (not name.endswith(".json") or is_special(name)):
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
