"""``sardonyx crash``: cut the power everywhere and look; a thin call of the native explorer.

Each design is one timed run and all its cuts. Exit status 1 if a design breaks its promise.
Left out: everything that computes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    check_json_target,
    err,
    for_people,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.options import JsonTo, Machine, Set
from sardonyx.cli.progress import Watcher
from sardonyx.runs.crashes import CrashQuestion, explore
from sardonyx.runs.jobs import check_designs, parse_settings
from sardonyx.runs.sources import ProgramSource, unknown

#: The designs of the SCA paper that promise something, and the one that promises nothing.
DESIGNS = "sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"
#: What the table's columns count.
LEGEND = "states: cuts with bytes of their own; nested: cuts within recovery; lost, secrets: cuts"
PLATFORMS = ("adr", "eadr", "none")


def crash(
    workload: Annotated[
        str, typer.Argument(help="The program: array-swap, queue, hash, btree, rbtree or duplicates.")
    ],
    designs: Annotated[
        str,
        typer.Option("--designs", "-d", help="Designs, or MAPPING+POLICY, separated by commas."),
    ] = DESIGNS,
    platform: Annotated[
        str, typer.Option(help="What reserve power drains at a cut: adr, eadr or none.")
    ] = "adr",
    cuts: Annotated[
        str, typer.Option(help="How many cuts: all, or a number of positions drawn from the seed.")
    ] = "all",
    cut: Annotated[
        int | None, typer.Option(min=0, max=MOST, help="Replay the cut at this position only.")
    ] = None,
    cores: Annotated[
        int, typer.Option(min=1, max=64, help="Cores, each with a structure of its own.")
    ] = 1,
    transactions: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Transactions of each core.")
    ] = 200,
    transaction_size: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of a transaction's item: 64 to 4K.")
    ] = "64",
    footprint: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of each structure after setup: 4K to 1G.")
    ] = "16K",
    mutant: Annotated[
        str | None, typer.Option(help="Plant this mistake in the program's transactions.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**40, help="Of keys, evictions, delays and samples.")
    ] = 1,
    recovery_cuts: Annotated[
        int,
        typer.Option(min=0, max=MOST, help="Cut one recovery in so many as well; 0 for none."),
    ] = 64,
    full: Annotated[
        int,
        typer.Option(
            "--full",
            min=1,
            max=MOST,
            help="Look at one cut in so many in full, at the rest at what it changed; 1: at all.",
        ),
    ] = 509,
    machine: Machine = "sca",
    settings: Set = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
    ] = 0,
    json_to: JsonTo = None,
) -> None:
    """Cut the power at every position of a run, recover, and look at what is left.

    [bold]Examples[/bold]

    sardonyx crash btree --designs sca,fca,no-atomicity

    sardonyx crash queue --designs sca --cores 4 --mutant no-fence-after-log

    sardonyx crash btree --designs sca --set encryption.global_counter=paper --json crash.json
    """
    chosen = check_designs([name.strip() for name in designs.split(",") if name.strip()])
    if platform not in PLATFORMS:
        raise _core.SardonyxError(f"--platform: {unknown('platform', platform, PLATFORMS)}")
    count = _count(cuts)
    if cut is not None and count is not None:
        raise _core.SardonyxError(f"--cut {cut}: is one cut, and --cuts {cuts} asks for others")
    program = ProgramSource(
        name=workload,
        item_bytes=size_in_bytes("--transaction-size", transaction_size, 64, 4096),
        footprint=size_in_bytes("--footprint", footprint, 4096, 2**30),
        transactions=transactions,
        seed=seed,
    )
    overrides = parse_settings(settings or ())
    check_json_target(json_to)
    questions = [
        CrashQuestion(
            program=program,
            design=design,
            machine=machine,
            overrides=overrides,
            cores=cores,
            mutant=mutant,
            platform=platform,
            cuts=count,
            cut=cut,
            recovery_cuts=recovery_cuts,
            full_one_in=full,
            threads=jobs,
        )
        for design in chosen
    ]
    with Watcher(err) as watch:
        runs = explore(questions, watch)
    people = for_people(json_to)
    people.print(_table(runs))
    speed = sum(run["cuts"] for run in runs) / sum(
        run["cuts"] / run["cuts_per_second"] for run in runs
    )
    people.print(Text(LEGEND + f"; {speed:,.0f} cuts/s", style="dim"))
    for run in runs:
        for violation in run["violations"]:
            _tell(people, violation, _replay(run, violation, machine, settings or ()))
    write_json(json_to, {"sardonyx": _core.VERSION, "runs": runs})
    if any(run["fails"] for run in runs):
        raise typer.Exit(CHECK_FAILED)


def _count(cuts: str) -> int | None:
    if cuts == "all":
        return None
    if cuts.isascii() and cuts.isdigit() and 0 < int(cuts) <= MOST:
        return int(cuts)
    raise _core.SardonyxError(f'--cuts {cuts}: give "all" or a number of cuts')


def _table(runs: list[dict[str, Any]]) -> Table:
    first = runs[0]
    planted = f", mutant {first['mutant']}" if first["mutant"] else ""
    table = Table(
        title=f"{first['program']}, {first['cores']} core(s), {first['transactions']} "
        f"transactions, {first['platform']}, seed {first['seed']}{planted}",
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    for column in ("design", "promises"):
        table.add_column(column)
    for column in ("cuts", "states", "nested", "lost", "secrets"):
        table.add_column(column, justify="right")
    table.add_column("")
    for run in runs:
        broken = run["recoverability_violations"] + run["secrecy_violations"]
        verdict = Text("holds", style="green") if not broken else Text("broken", style="red")
        if broken and not run["fails"]:
            verdict = Text("caught", style="yellow")
        table.add_row(
            Text(run["design"]),
            Text(run["guarantee"].replace("program ", "")),
            f"{run['cuts']:,}",
            f"{run['distinct_states']:,}",
            f"{run['recovery_cuts']:,}",
            f"{run['recoverability_violations']:,}",
            f"{run['secrecy_violations']:,}",
            verdict,
        )
    return table


def _replay(
    run: dict[str, Any], violation: dict[str, Any], machine: str, settings: Sequence[str]
) -> str:
    """The command that makes the violation's cut alone, and looks at it in full."""
    words = ["sardonyx", "crash", run["program"], "--designs", run["design"]]
    for option, value in (
        ("--platform", run["platform"]),
        ("--cores", run["cores"]),
        ("--transactions", run["transactions"]),
        ("--transaction-size", run["transaction_bytes"]),
        ("--footprint", run["footprint_bytes"]),
        ("--mutant", run["mutant"]),
        ("--seed", run["seed"]),
        ("--machine", machine),
        *(("--set", setting) for setting in settings),
        ("--recovery-cuts", None if violation["recovery_cut"] is None else 1),
        ("--cut", violation["cut"]),
    ):
        words += [] if value is None else [option, str(value)]
    return shlex.join(words)


def _tell(people: Console, violation: dict[str, Any], again: str) -> None:
    """The first violation of a kind: how often, where, and the history that led there."""
    head, *story = violation["history"]
    people.print()
    people.print(Text(f"{head} ({violation['count']:,} cuts)", style="bold"))
    for line in story:
        people.print(Text(line), soft_wrap=True)
    if violation["cut"] is not None:
        people.print(Text(f"  replay: {again}"), soft_wrap=True)
