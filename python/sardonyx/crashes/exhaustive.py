"""``crash exhaustive``: all orders in which the writes of one small run are accepted."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console

from sardonyx.api.command import Answer
from sardonyx.crashes.proofs import show_proofs
from sardonyx.crashes.tried import answered, one_run
from sardonyx.questions import CrashExhaustive, ExhaustiveQuestion
from sardonyx.runs.crashes import explore
from sardonyx.runs.scheduler import Watch

#: The sharings that are proven unless the user names one. A line of counters that all lines share
#: puts their writes in order, so each sharing has mistakes that the other hides.
BOTH_ENDS = ("apart", "interleaved")
#: The most transactions of a core whose orders are all tried, and the order without a choice.
BOUND = 2
FROM_START = "start"


def answer(asked: CrashExhaustive, watch: Watch | None) -> Answer:
    """What each run shows in all orders, and in all cuts of the life after each cut."""
    order = _order(asked.order)
    lives = 0 if asked.one_life else 1
    asks = [
        ExhaustiveQuestion(run=run, most_states=asked.most_states, order=order)
        for sharing in ([asked.sharing] if asked.sharing is not None else BOTH_ENDS)
        for run in one_run(asked, sharing, transactions=BOUND, footprint=0, recovery_cuts=lives)
    ]
    proofs = explore(asks, watch)
    again = [_in_order(asked, proof, each) for proof in proofs for each in proof["violations"]]
    return answered("crash exhaustive", proofs, (again, order is not None))


def tell(people: Console, answer: Answer) -> None:
    """The proofs, and each violation with the command that makes its order again."""
    again, one = answer.shown
    show_proofs(people, answer["runs"], again, one=one)


def _order(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == FROM_START:
        return None if text is None else ()
    return tuple(map(int, text.split(",")))


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
