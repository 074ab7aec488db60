"""``sardonyx crash``: cut the power everywhere and look; a thin call of the native explorer.

Without ``--once`` each design is tried by a plan of passes (``docs/crash-explorer.md``). Exit
status 1 if a design breaks its promise, or if the runs have not exercised what it rests on.
Left out: recordings of real programs (``crash-test``), and everything that computes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core, questions
from sardonyx.cli import complete, crash_replay
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    check_json_target,
    err,
    fail,
    for_people,
    seconds_in,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.crash_attacks import not_promised, show_attacks
from sardonyx.cli.crash_orders import show_proofs, tell
from sardonyx.cli.forms import Options, Work
from sardonyx.cli.help import Command, rare
from sardonyx.cli.options import JsonTo, Machine, Set
from sardonyx.cli.progress import Watcher
from sardonyx.questions import ProgramSource
from sardonyx.runs.crashes import (
    FULL_ONE_IN,
    RECOVERY_CUTS,
    CrashQuestion,
    ExhaustiveQuestion,
    TrialQuestion,
    explore,
    orders,
    trials,
)
from sardonyx.runs.jobs import check_designs, parse_settings
from sardonyx.runs.sources import known_programs, unknown

#: The designs of the SCA paper that promise something, and the one that promises nothing.
DESIGNS = "sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"
#: What the table's columns count.
LEGEND = "nested: cuts after a recovery; lost, secrets: cuts at which data or a secret were lost"
PLATFORMS = ("adr", "eadr", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part")
TEARS = ("lines", "words")
SHARINGS = ("apart", "packed", "interleaved")
#: Those of which a proof is made unless one is named. A line of counters that all lines share puts
#: their writes in order, so either has mistakes that the other hides.
BOTH_ENDS = ("apart", "interleaved")
#: So many runs have columns of their own beside each other in 80 columns of text.
SIDE_BY_SIDE = 4
#: Bytes of memory that are worth a word.
NOTABLE = 2**30
#: Transactions of a core of which all orders are tried, and the order without a choice.
BOUND = 2
FROM_START = "start"
VERDICTS = {"holds": "green", "caught": "yellow", "broken": "red", "not exercised": "red"}
RECORDING = ".parquet"


class NoRecordings(Command):
    """Says what a recording is for, whatever options stand beside it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for word in args:
            if word.endswith(RECORDING) or (word == args[0] and Path(word).is_file()):
                raise fail(
                    f"{word}: is a file, and crash takes programs (see sardonyx programs); for a "
                    f"recording of a real program: sardonyx crash-test {shlex.quote(word)} "
                    "--pool FILE --recover 'CMD {pool}'"
                )
        return super().parse_args(ctx, args)


#: How the command line calls it.
SETTINGS: dict[str, Any] = {"cls": NoRecordings}


@dataclass(frozen=True, kw_only=True)
class Crash(Options):
    """The options of ``sardonyx crash``."""

    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM..",
            help="Programs (see sardonyx programs), or all of them: all.",
            autocompletion=complete.programs,
        ),
    ] = None
    designs: Annotated[
        str,
        typer.Option(
            "--designs",
            "-d",
            help="Designs, or MAPPING+POLICY, separated by commas.",
            autocompletion=complete.designs,
        ),
    ] = DESIGNS
    platform: Annotated[
        str,
        typer.Option(
            help="What reserve power drains at a cut: adr, eadr or none; or a CXL global "
            "persistent flush: gpf, gpf-failed, gpf-device or gpf-part."
        ),
    ] = "adr"
    tear: Annotated[
        str,
        typer.Option(
            help="What a cut leaves whole while a line is being accepted: the line (lines) "
            "or each 8 bytes (words)."
        ),
    ] = "lines"
    thorough: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Go on with further seeds for this time per design: 90s, 10m or 2h.",
        ),
    ] = None
    once: Annotated[
        bool, typer.Option("--once", help="One run with the settings given, not the plan.")
    ] = False
    cuts: Annotated[
        str, typer.Option(help="How many cuts: all, or a number of positions drawn from the seed.")
    ] = "all"
    cut: Annotated[
        int | None,
        typer.Option(min=0, max=MOST, help="Make one run, and cut it at this position only."),
    ] = None
    exhaustive: Annotated[
        bool,
        typer.Option(
            "--exhaustive",
            help="Try all orders in which the writes of one small run can be accepted, all "
            "cuts, and all cuts of the life after each.",
        ),
    ] = False
    most_states: Annotated[
        int, typer.Option(min=1, max=MOST, help="With --exhaustive: give up beyond N states.")
    ] = questions.ExhaustiveQuestion.model_fields["most_states"].default
    order: Annotated[
        str | None,
        typer.Option(
            metavar="N,N..",
            help="With --exhaustive: only the order in which these writes go first, one "
            "number for each choice; after them always the first write. start: no "
            "numbers.",
        ),
    ] = None
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Make the cut of this replay file again."),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Directory of replay files; default: that of --json, else results/crash.",
        ),
    ] = None
    attack: Annotated[
        bool | None,
        typer.Option(
            "--attack/--no-attack",
            help="Have an attacker change the medium, after cuts and in runs; default: for "
            "designs with integrity.",
        ),
    ] = None
    stages: Annotated[
        bool,
        typer.Option(
            "--stages", help="Count one run's cuts by the stage of the transaction (SCA Table 1)."
        ),
    ] = False
    cores: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Cores, each with a structure of its own: 2 in a plan."),
    ] = None
    sharing: Annotated[
        str | None,
        typer.Option(
            help="Lines of counters: apart, packed (log and data share), interleaved (cores too)."
        ),
    ] = None
    transactions: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Transactions of each core.")
    ] = None
    transaction_size: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of a transaction's item: 64 to 4K."),
    ] = None
    footprint: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of each structure after setup: 4K to 1G."),
    ] = None
    mutant: Annotated[
        str | None, typer.Option(help="Plant this mistake in the program's transactions.")
    ] = None
    no_log: Annotated[
        bool,
        typer.Option("--no-log", help="The program keeps no undo log; the design's own stays."),
    ] = False
    seed: Annotated[
        int, typer.Option(min=0, max=2**50, help="Seed of keys, evictions, delays and samples.")
    ] = 1
    recovery_cuts: Annotated[
        int,
        typer.Option(min=0, max=MOST, help="After every Nth cut, go on and cut again; 0: never."),
    ] = RECOVERY_CUTS
    full: Annotated[
        int,
        typer.Option(
            "--full",
            min=1,
            max=MOST,
            help="Check every Nth cut in full, the others by what it changed; 1: every cut.",
        ),
    ] = FULL_ONE_IN
    machine: Machine = "sca"
    settings: Set = None
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
    ] = 0
    json_to: JsonTo = None


@rare(
    "tear",
    "cuts",
    "most_states",
    "order",
    "out",
    "sharing",
    "transactions",
    "transaction_size",
    "footprint",
    "stages",
    "no_log",
    "seed",
    "recovery_cuts",
    "full",
    "jobs",
)
def crash(asked: Crash) -> Work:
    """Cut the power at every position of a run, recover, and check what is left.

    Each design is tried by a plan: runs with several seeds, tiny caches and queues, one core and
    two, and who shares lines of counters. The second table says what the verdict rests on.

    [bold]Examples[/bold]

    sardonyx crash btree --designs sca,fca,no-atomicity

    sardonyx crash all --designs esd+sca --platform eadr --thorough 5m

    sardonyx crash queue --designs sca --cores 4 --mutant no-fence-after-log

    sardonyx crash btree --designs sca --set encryption.global_counter=paper --json crash.json

    sardonyx crash btree --designs sca,sca@mac,sca@merkle --attack

    sardonyx crash array-swap --exhaustive --designs sca,fca,esd+sca
    """
    if asked.exhaustive:
        return _exhaustive(asked)
    questions: Sequence[CrashQuestion] | Sequence[TrialQuestion]
    ask: Callable[[Watcher], list[dict[str, Any]]]
    again: Callable[[dict[str, Any], dict[str, Any]], str]
    if asked.replay is not None:
        return _again(asked, asked.replay)
    stages = asked.stages
    if stages:
        form, questions = "with --stages", _runs(asked)
        ask = partial(explore, questions, stages=True)
    elif asked.cut is not None:
        form = "with --cut"
        questions = _runs(asked, software_log=_keeps(asked), cut=asked.cut, **_looked(asked))
        ask = partial(explore, questions)
    elif asked.once:
        form, how = "with --once", _every(asked) | _looked(asked)
        questions = _runs(asked, software_log=_keeps(asked), **how)
        ask = partial(explore, questions)
    else:
        form, questions = "without --once, --cut or --stages", _plan(asked)
        ask = partial(trials, questions)
    json_to = asked.json_to
    again = _no_replay if stages else _replays(asked).line
    memory = max(question.memory() for question in questions)
    forms = dict.fromkeys(("order", "most_states"), "without --exhaustive")
    return Work(_work(ask, json_to, again, memory, stages=stages), form, forms)


def _again(asked: Crash, path: Path) -> Work:
    """One cut, as a replay file says."""
    questions = [crash_replay.read(path, asked.jobs)]
    line = shlex.join(["sardonyx", "crash", "--replay", str(path)])
    memory = questions[0].memory()
    ask = partial(explore, questions)
    return Work(_work(ask, asked.json_to, lambda *_: line, memory), "with --replay")


def _work(
    ask: Callable[[Watcher], list[dict[str, Any]]],
    json_to: str | None,
    again: Callable[[dict[str, Any], dict[str, Any]], str],
    memory: int,
    *,
    stages: bool = False,
) -> Callable[[], None]:
    """Asks, shows what came of it, and ends with the status that it has earned."""
    check_json_target(json_to)

    def work() -> None:
        _say_cost(memory)
        with Watcher(err, unit="") as watch:
            runs = ask(watch)
        people = for_people(json_to)
        if stages:
            _show_stages(people, runs)
        else:
            _show(people, runs, again)
        write_json(json_to, {"sardonyx": _core.VERSION, "runs": runs})
        if any(run.get("fails") for run in runs):
            raise typer.Exit(CHECK_FAILED)

    return work


def _no_replay(*_: object) -> str:
    raise AssertionError("stages have no violations")


def _replays(asked: Crash) -> crash_replay.Replays:
    """Where the replay files go."""
    json_to, prefix, folder = asked.json_to, "", asked.out
    if folder is None:
        beside = None if json_to in (None, "-") else Path(json_to)
        folder = crash_replay.FOLDER if beside is None else beside.parent
        prefix = "" if beside is None else f"{beside.stem}-"
    crash_replay.check_folder(folder)
    return crash_replay.Replays(
        folder, prefix, asked.machine, parse_settings(asked.settings or ()), not asked.no_log
    )


def _exhaustive(asked: Crash) -> Work:
    """All orders of a run, which is small unless said otherwise."""
    order = _order(asked.order)
    runs = [
        CrashQuestion(
            program=ProgramSource(
                name=program,
                item_bytes=_item(asked) or 64,
                footprint=_region(asked) or 0,
                transactions=asked.transactions or BOUND,
                seed=asked.seed,
                software_log=_keeps(asked),
            ),
            design=design,
            cores=asked.cores or 1,
            sharing=sharing,
            recovery_cuts=1 if asked.recovery_cuts else 0,
            **_below(asked),
        )
        for sharing in ([_sharing(asked)] if asked.sharing else BOTH_ENDS)
        for program, design in _pairs(asked)
    ]
    most = asked.most_states
    questions = [ExhaustiveQuestion(run=run, most_states=most, order=order) for run in runs]
    json_to, machine, settings = asked.json_to, asked.machine, asked.settings or ()
    no_log = asked.no_log
    check_json_target(json_to)

    def work() -> None:
        with Watcher(err, unit="") as watch:
            proofs = orders(questions, watch)
        again = partial(_in_order, machine, settings, no_log)
        show_proofs(for_people(json_to), proofs, one=order is not None, again=again)
        write_json(json_to, {"sardonyx": _core.VERSION, "runs": proofs})
        if any(proof["fails"] for proof in proofs):
            raise typer.Exit(CHECK_FAILED)

    return Work(work, "with --exhaustive")


def _order(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == FROM_START:
        return None if text is None else ()
    words = text.split(",")
    if all(word.isascii() and word.isdigit() and int(word) < 2**16 for word in words):
        return tuple(int(word) for word in words)
    raise _core.SardonyxError(
        f"--order {text}: give numbers with commas between, as a violation prints them"
    )


def _in_order(
    machine: str,
    settings: Sequence[str],
    no_log: bool,
    proof: dict[str, Any],
    violation: dict[str, Any],
) -> str:
    """The command that makes the violation's order alone."""
    words = ["sardonyx", "crash", proof["program"], "--exhaustive", "--designs", proof["design"]]
    for option, value in (
        ("--platform", proof["platform"]),
        ("--cores", proof["cores"]),
        ("--sharing", proof["sharing"]),
        ("--transactions", proof["transactions"]),
        ("--transaction-size", proof["transaction_bytes"]),
        ("--footprint", proof["footprint_bytes"] if proof["footprint_bytes"] >= 4096 else None),
        ("--mutant", proof["mutant"]),
        ("--seed", proof["seed"]),
        ("--machine", machine),
        *(("--set", setting) for setting in settings),
        ("--recovery-cuts", 0 if violation["recovery_cut"] is None else None),
        ("--order", ",".join(map(str, violation["order"])) or FROM_START),
    ):
        words += [] if value is None else [option, str(value)]
    words += ["--no-log"] if no_log else []
    return shlex.join(words)


def _sharing(asked: Crash) -> str:
    sharing = asked.sharing or SHARINGS[0]
    if sharing not in SHARINGS:
        raise _core.SardonyxError(f"--sharing: {unknown('sharing', sharing, SHARINGS)}")
    return sharing


def _plan(asked: Crash) -> list[TrialQuestion]:
    """A trial of each program and design."""
    thorough = asked.thorough
    return [
        TrialQuestion(
            program=program,
            design=design,
            seed=asked.seed,
            cores=asked.cores,
            transactions=asked.transactions,
            item_bytes=_item(asked),
            footprint=_region(asked),
            thorough_seconds=None if thorough is None else seconds_in("--thorough", thorough),
            software_log=_keeps(asked),
            **_below(asked),
            **_every(asked),
            **_looked(asked),
        )
        for program, design in _pairs(asked)
    ]


def _runs(asked: Crash, *, software_log: bool = True, **how: Any) -> list[CrashQuestion]:
    """One run of each program and design."""
    return [
        CrashQuestion(
            program=ProgramSource(
                name=program,
                item_bytes=_item(asked) or 64,
                footprint=_region(asked) or 16_384,
                transactions=asked.transactions or 200,
                seed=asked.seed,
                software_log=software_log,
            ),
            design=design,
            cores=asked.cores or 1,
            sharing=_sharing(asked),
            **_below(asked),
            **how,
        )
        for program, design in _pairs(asked)
    ]


def _pairs(asked: Crash) -> list[tuple[str, str]]:
    if not asked.programs:
        raise _core.SardonyxError("no program is named; sardonyx programs lists them, all is all")
    designs = check_designs([name.strip() for name in asked.designs.split(",") if name.strip()])
    programs = known_programs() if asked.programs == ["all"] else asked.programs
    return [(program, design) for program in programs for design in designs]


def _below(asked: Crash) -> dict[str, Any]:
    """What every form asks of the machine below, and of the program's log."""
    if asked.platform not in PLATFORMS:
        raise _core.SardonyxError(f"--platform: {unknown('platform', asked.platform, PLATFORMS)}")
    return {
        "machine": asked.machine,
        "overrides": parse_settings(asked.settings or ()),
        "mutant": asked.mutant,
        "platform": asked.platform,
    }


def _keeps(asked: Crash) -> bool:
    """Whether programs keep an undo log of their own, where the design does not."""
    if asked.no_log and asked.mutant is not None:
        raise _core.SardonyxError(
            f"--no-log: there is no log to plant {asked.mutant} in; leave one out"
        )
    return not asked.no_log


def _every(asked: Crash) -> dict[str, Any]:
    """Which cuts are made, where it is more than one."""
    return {"cuts": _count(asked.cuts), "full_one_in": asked.full, "attack": asked.attack}


def _looked(asked: Crash) -> dict[str, Any]:
    """How a cut is made, and what comes after it."""
    tear, platform = asked.tear, asked.platform
    if tear not in TEARS:
        raise _core.SardonyxError(f"--tear: {unknown('tear', tear, TEARS)}")
    if tear != "lines" and platform != "adr":
        raise _core.SardonyxError(f"--tear {tear}: is for --platform adr; {platform} says its own")
    return {"tear": tear, "recovery_cuts": asked.recovery_cuts, "threads": asked.jobs}


def _item(asked: Crash) -> int | None:
    text = asked.transaction_size
    return None if text is None else size_in_bytes("--transaction-size", text, 64, 4096)


def _region(asked: Crash) -> int | None:
    text = asked.footprint
    return None if text is None else size_in_bytes("--footprint", text, 4096, 2**30)


def _say_cost(memory: int) -> None:
    """What a large run will need, before it starts."""
    if memory >= NOTABLE:
        err.print(
            f"a run needs about {memory / 2**30:.1f} GiB of memory, and some minutes for each "
            "GiB; a smaller --footprint or fewer --transactions need less"
        )


def _count(cuts: str) -> int | None:
    if cuts == "all":
        return None
    if cuts.isascii() and cuts.isdigit() and 0 < int(cuts) <= MOST:
        return int(cuts)
    raise _core.SardonyxError(f'--cuts {cuts}: give "all" or a number of cuts')


def _plain(title: str = "") -> Table:
    return Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="dim"
    )


def _show(
    people: Console,
    runs: list[dict[str, Any]],
    again: Callable[[dict[str, Any], dict[str, Any]], str],
) -> None:
    people.print(_verdicts(runs))
    seconds = sum(run["seconds"] for run in runs)
    speed = sum(run["cuts"] + run["recovery_cuts"] for run in runs) / max(seconds, 1e-9)
    people.print(Text(f"{LEGEND}; {speed:,.0f} cuts/s", style="dim"))
    people.print()
    show_attacks(people, runs)
    for run in runs:
        people.print(Text(_reached(run)), soft_wrap=True)
    people.print()
    people.print(_exercised(runs) if len(runs) <= SIDE_BY_SIDE else _folded(runs))
    for line in _beside(runs):
        people.print(Text(line, style="dim"), soft_wrap=True)
    for run in runs:
        for words in _lacking(run):
            people.print(Text(words, style="red"), soft_wrap=True)
    for run in runs:
        for violation in run["violations"]:
            tell(people, violation, again(run, violation))
        for lost in not_promised(run):
            tell(people, lost, again(run, lost))


def _reached(run: dict[str, Any]) -> str:
    """How far the runs have come, in one line: what the verdict says nothing beyond."""
    amounts = [f"{run['cuts']:,} cuts"]
    amounts += [f"{name} {count:,}" for name, count in run["reached"].items() if count]
    return f"{run['program']}, {run['design']}: {_verdict(run)} at {', '.join(amounts)}"


def _verdict(run: dict[str, Any]) -> str:
    """The verdict, and what an option has taken away of what it would otherwise rest on."""
    narrowed = run.get("narrowed", ()) if run["verdict"] == "holds" else ()
    return ", ".join([run["verdict"], *(f"for {what} only" for what in narrowed)])


def _lacking(run: dict[str, Any]) -> list[str]:
    """What a verdict would have to rest on and cannot, and what keeps it from that; a line each."""
    if run["verdict"] != "not exercised":
        return []
    by: dict[str, list[str]] = {}
    for lack in run["lacks"]:
        kept = " and ".join(lack["kept_by"])
        by.setdefault(kept, []).append(f"{lack['what']} {lack['had']:,} of {lack['least']:,}")
    return [
        f"{run['program']}, {run['design']}: no violation, but too little was tried: "
        f"{', '.join(each)}; "
        + (
            f"{kept} prevents more: leave it out"
            if kept
            else "the plan could not reach it: give another --seed, or --thorough TIME"
        )
        for kept, each in by.items()
    ]


def _beside(runs: list[dict[str, Any]]) -> list[str]:
    """What stands beside the verdicts of a plan, a line a design: limits not reached, digests."""
    designs = {run["design"]: run for run in runs}
    lines = []
    for design, run in designs.items():
        never = [f"{name} ({why})" for name, why in run.get("not_reached", ())]
        if never:
            lines.append(f"{design}: no run comes to {'; '.join(never)}")
        if run.get("shows"):
            regions = ", ".join(run["shows"])
            lines.append(f"{design}: shows digests of contents under no key, in {regions}")
    return lines


def _verdicts(runs: list[dict[str, Any]]) -> Table:
    first = runs[0]
    planted = f", mutant {first['mutant']}" if first["mutant"] else ""
    runs_made = sum(run["reached"]["runs"] for run in runs)
    passes = f", {runs_made:,} runs" if "passes" in first else ""
    table = _plain(f"{first['platform']}, seed {first['seed']}{passes}{planted}")
    for column in ("program", "design"):
        table.add_column(column, no_wrap=True)
    for column in ("cuts", "nested", "lost", "secrets"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for run in runs:
        table.add_row(
            Text(run["program"]),
            Text(run["design"]),
            f"{run['cuts']:,}",
            f"{run['recovery_cuts']:,}",
            f"{run['lost_cuts']:,}",
            f"{run['secret_cuts']:,}",
            Text(_verdict(run), style=VERDICTS[run["verdict"]]),
        )
    return table


def _exercised(runs: list[dict[str, Any]]) -> Table:
    """What the verdicts rest on: a row a mechanism; a dash where the design has none such."""
    table = _plain("what was exercised")
    table.add_column("mechanism")
    several = len({run["program"] for run in runs}) > 1
    for run in runs:
        name = f"{run['program']}\n{run['design']}" if several else run["design"]
        table.add_column(Text(name), justify="right")
    for mechanism in runs[0]["exercised"]:
        counts = [run["exercised"][mechanism] for run in runs]
        needed = [mechanism in run["required"] for run in runs]
        short = [mechanism in run["not_exercised"] for run in runs]
        if not any(counts) and not any(needed):
            continue
        cells = [
            Text(f"{count:,}", style="red" if few else "")
            if count or need
            else Text("-", style="dim")
            for count, need, few in zip(counts, needed, short, strict=True)
        ]
        table.add_row(Text(mechanism), *cells)
    return table


def _folded(runs: list[dict[str, Any]]) -> Table:
    """The same of many runs: of each mechanism the least and the most, of those that need it."""
    table = _plain(f"what was exercised, in {len(runs)} pairs of program and design")
    table.add_column("mechanism")
    for column in ("pairs", "least", "in", "most"):
        table.add_column(column, justify="left" if column == "in" else "right")
    for mechanism in runs[0]["exercised"]:
        own = [run for run in runs if mechanism in run["required"]]
        own = own or [run for run in runs if run["exercised"][mechanism]]
        if not own:
            continue
        least = min(own, key=lambda run: run["exercised"][mechanism])
        few = any(mechanism in run["not_exercised"] for run in own)
        table.add_row(
            Text(mechanism),
            str(len(own)),
            Text(f"{least['exercised'][mechanism]:,}", style="red" if few else ""),
            Text(f"{least['program']} {least['design']}"),
            f"{max(run['exercised'][mechanism] for run in own):,}",
        )
    return table


def _show_stages(people: Console, runs: list[dict[str, Any]]) -> None:
    for run in runs:
        table = _plain(f"{run['program']}, {run['design']}, {run['platform']}, by stage")
        columns = [key for key in run["stages"][0] if key != "stage"]
        table.add_column("stage")
        for column in columns:
            table.add_column(column.replace("_", " "), justify="right")
        for row in run["stages"]:
            table.add_row(row["stage"], *(f"{row[column]:,}" for column in columns))
        people.print(table)
