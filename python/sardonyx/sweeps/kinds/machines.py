"""What several kinds ask of the simulator before they run: machines, designs, programs."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from sardonyx import _core
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import unknown


@lru_cache(4096)
def effective(
    machine: str, overrides: tuple[Setting, ...], design: str | None = None
) -> tuple[str, str]:
    """A machine's name, and a hash of all its parameters, or of all that a design has."""
    whole = json.loads(_core.machine(machine, list(overrides)))
    idle = _idle(design) if design else ()
    parameters = {name: value for name, value in whole["parameters"].items() if name not in idle}
    text = json.dumps(parameters, sort_keys=True)
    return str(whole["name"]), hashlib.sha256(text.encode()).hexdigest()


@lru_cache
def _idle(design: str) -> set[str]:
    return _core.idle_keys(design)


@lru_cache
def programs() -> list[str]:
    return [str(program["name"]) for program in json.loads(_core.programs())["programs"]]


@lru_cache
def check_design(name: str) -> None:
    known = [str(design["name"]) for design in json.loads(_core.designs())]
    if "+" in name or "@" in name:
        _core.guarantee(name)
    elif name not in known:
        raise _core.SardonyxError(unknown("design", name, known))
