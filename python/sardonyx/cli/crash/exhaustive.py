"""``sardonyx crash exhaustive``: all orders in which the writes of one small run are accepted."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sardonyx import _core, questions
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    check_json_target,
    err,
    for_people,
    write_json,
)
from sardonyx.cli.crash.options import SHARING, Logged, one_run
from sardonyx.cli.crash.proofs import show_proofs
from sardonyx.cli.help import rare
from sardonyx.cli.progress import Watcher
from sardonyx.questions import ExhaustiveQuestion, ProgramSource
from sardonyx.runs.crashes import explore

#: The sharings that are proven unless the user names one. A line of counters that all lines share
#: puts their writes in order, so each sharing has mistakes that the other hides.
BOTH_ENDS = ("apart", "interleaved")
#: The most transactions of a core whose orders are all tried, and the order without a choice.
BOUND = 2
FROM_START = "start"


@dataclass(frozen=True, kw_only=True)
class Exhaustive(Logged):
    """The options of ``sardonyx crash exhaustive``."""

    sharing: Annotated[str | None, typer.Option(help=f"{SHARING} Default: both ends.")] = None
    most_states: Annotated[int, typer.Option(min=1, max=MOST, help="Give up beyond N states.")] = (
        questions.ExhaustiveQuestion.most_states
    )
    order: Annotated[
        str | None,
        typer.Option(
            metavar="N,N..",
            help="Only the order in which these writes go first, one number for each choice; "
            "after them always the first write. start: no numbers.",
        ),
    ] = None
    one_life: Annotated[
        bool, typer.Option("--one-life", help="Leave out the life after each cut.")
    ] = False

    def source(self, program: str, *, software_log: bool = True) -> ProgramSource:
        """The program of one run, which is small unless said otherwise."""
        return ProgramSource(
            name=program,
            item_bytes=self.item() or 64,
            footprint=self.region() or 0,
            transactions=self.transactions or BOUND,
            seed=self.seed,
            software_log=software_log,
        )


@rare("transaction_size", "footprint", "no_log", "seed")
def exhaustive(asked: Exhaustive) -> None:
    """Try all orders in which the writes of one small run can be accepted, and all their cuts.

    All cuts of the life after each cut are tried too.

    [bold]Example[/bold]: sardonyx crash exhaustive array-swap --designs sca,fca,esd+sca
    """
    order = _order(asked.order)
    how: dict[str, Any] = {"software_log": asked.keeps_log()}
    how["recovery_cuts"] = 0 if asked.one_life else 1
    asks = [
        ExhaustiveQuestion(run=run, most_states=asked.most_states, order=order)
        for sharing in ([asked.sharing] if asked.sharing is not None else BOTH_ENDS)
        for run in one_run(asked, sharing, **how)
    ]
    check_json_target(asked.json_to)
    with Watcher(err, unit="") as watch:
        proofs = explore(asks, watch)
    people = for_people(asked.json_to)
    show_proofs(people, proofs, one=order is not None, again=lambda *of: _in_order(asked, *of))
    write_json(asked.json_to, {"sardonyx": _core.VERSION, "runs": proofs})
    if any(proof["fails"] for proof in proofs):
        raise typer.Exit(CHECK_FAILED)


def _order(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == FROM_START:
        return None if text is None else ()
    words = text.split(",")
    if all(word.isascii() and word.isdigit() and int(word) < 2**16 for word in words):
        return tuple(int(word) for word in words)
    raise _core.SardonyxError(
        f"--order {text}: give numbers with commas between, as a violation prints them"
    )


def _in_order(asked: Exhaustive, proof: dict[str, Any], violation: dict[str, Any]) -> str:
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
        *(("--set", setting) for setting in asked.settings or ()),
        ("--order", ",".join(map(str, violation["order"])) or FROM_START),
    ):
        words += [] if value is None else [option, str(value)]
    words += ["--one-life"] if violation["recovery_cut"] is None else []
    words += ["--no-log"] if asked.no_log else []
    return shlex.join(words)
