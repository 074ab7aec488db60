"""What several kinds ask of the simulator before they run: machines, designs, programs."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from sardonyx import _core, layers
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import check_known


def effective(
    machine: str, overrides: tuple[Setting, ...], design: str | None = None
) -> tuple[str, str]:
    """A machine's name, and a hash of all its parameters, or of all that a design has.

    Keys of designs in Python that it does not have are none of a point's: who runs it need not
    know them.
    """
    return _effective(machine, overrides, design, tuple(layers.registered()))


@lru_cache(4096)
def _effective(
    machine: str, overrides: tuple[Setting, ...], design: str | None, registered: tuple[str, ...]
) -> tuple[str, str]:
    whole = json.loads(_core.machine(machine, list(overrides)))
    idle = _idle(design, registered) if design else set()
    own = tuple(f"{name.replace('-', '_')}." for name in registered if design is None)
    parameters = {
        name: value
        for name, value in whole["parameters"].items()
        if name not in idle and not name.startswith(own)
    }
    text = json.dumps(parameters, sort_keys=True)
    return str(whole["name"]), hashlib.sha256(text.encode()).hexdigest()


@lru_cache
def _idle(design: str, _registered: tuple[str, ...]) -> set[str]:
    return _core.idle_keys(design)


def of_classes(design: str) -> dict[str, dict[str, str]]:
    """What the classes in Python of a design add to a point's identity: what their files hold."""
    found = layers.contents(design)
    return {"classes": found} if found else {}


@lru_cache
def programs() -> list[str]:
    return [str(program["name"]) for program in json.loads(_core.programs())["programs"]]


@lru_cache
def check_design(name: str) -> None:
    layers.load_named()
    known = [str(design["name"]) for design in json.loads(_core.designs())]
    if "+" in name or "@" in name:
        _core.guarantee(name)
    else:
        check_known("design", name, known)
