"""``crash exhaustive``: all orders in which the writes of one small run are accepted."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import CrashExhaustive
from sardonyx.crashes import plans
from sardonyx.crashes.proofs import show_proofs
from sardonyx.runs.scheduler import Watch

FROM_START = "start"


def answer(asked: CrashExhaustive, watch: Watch | None) -> Answer:
    """What is proven of each design, and in what order it breaks."""
    found = plans.ran(asked, _core.crash_exhaustive, watch)
    found.shown = asked
    return found


def tell(people: Console, answer: Answer) -> None:
    """A row a run, what the verdicts are about, each violation with the command of its order."""
    asked = answer.shown
    one = asked.order is not None
    show_proofs(people, answer["runs"], one=one, again=lambda *of: _in_order(asked, *of))


def _in_order(asked: CrashExhaustive, proof: dict[str, Any], violation: dict[str, Any]) -> str:
    """The command that makes the violation's order alone."""
    words = ["sardonyx", "crash", "exhaustive", proof["program"], "--designs", proof["design"]]
    for option, value in (
        ("--platform", proof["platform"]),
        ("--cores", proof["cores"]),
        ("--sharing", proof["sharing"]),
        ("--transactions", proof["transactions"]),
        ("--transaction-size", proof["transaction_bytes"]),
        ("--footprint", proof["footprint_bytes"] if proof["footprint_bytes"] >= 4096 else None),
        ("--mutant", proof["mutant"]),
        ("--seed", proof["seed"]),
        ("--machine", asked.machine),
        *(("--set", f"{key}={value}") for key, value in asked.set),
        ("--order", ",".join(map(str, violation["order"])) or FROM_START),
    ):
        words += [] if value is None else [option, str(value)]
    words += ["--one-life"] if violation["recovery_cut"] is None else []
    words += ["--no-log"] if asked.no_log else []
    return shlex.join(words)
