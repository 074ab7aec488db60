"""``sardonyx crash``: cut the power everywhere and look; a thin call of the native explorer.

Without ``--once`` each design is tried by a plan of passes (``docs/crash.md``). Exit status 1 if a
design breaks its promise, or if the plan has not exercised what the verdict has to rest on.
Left out: everything that computes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    PATH,
    check_json_target,
    err,
    for_people,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.options import JsonTo, Machine, Set
from sardonyx.cli.progress import Watcher
from sardonyx.cli.recovery import Asked, crash_recording, is_recording
from sardonyx.runs.crashes import CrashQuestion, TrialQuestion, explore, trials
from sardonyx.runs.jobs import check_designs, parse_settings
from sardonyx.runs.sources import ProgramSource, known_programs, unknown

#: The designs of the SCA paper that promise something, and the one that promises nothing.
DESIGNS = "sca,fca,co-located,co-located-cc,no-encryption,no-atomicity"
#: What the table's columns count.
LEGEND = "nested: cuts after a recovery; lost, secrets: cuts at which data or a secret were lost"
PLATFORMS = ("adr", "eadr", "none")
TEARS = ("lines", "words")
SHARINGS = ("apart", "packed", "interleaved")
#: What one run is asked as a plan is.
SHARED = set(TrialQuestion.model_fields) & set(CrashQuestion.model_fields) - {"program", "cores"}
#: Bytes of memory that are worth a word.
NOTABLE = 2**30
UNITS = {"s": 1, "m": 60, "h": 3600}
#: The help's heading of what is for a RECORDING.
REAL = "Real programs: crash RECORDING (docs/crash-real.md)"
VERDICTS = {"holds": "green", "caught": "yellow", "broken": "red", "not exercised": "red"}


def crash(
    ctx: typer.Context,
    workloads: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD..",
            help="Programs (see sardonyx programs), or all of them: all. Or one RECORDING.",
        ),
    ],
    designs: Annotated[
        str,
        typer.Option("--designs", "-d", help="Designs, or MAPPING+POLICY, separated by commas."),
    ] = DESIGNS,
    platform: Annotated[
        str, typer.Option(help="What reserve power drains at a cut: adr, eadr or none.")
    ] = "adr",
    tear: Annotated[
        str, typer.Option(help="What adr accepts of a line whole: all (lines) or 8 bytes (words).")
    ] = "lines",
    thorough: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Go on with further seeds for so long a design: 90s, 10m or 2h."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="One run with the settings given, not the plan.")
    ] = False,
    cuts: Annotated[
        str, typer.Option(help="How many cuts: all, or a number of positions drawn from the seed.")
    ] = "all",
    cut: Annotated[
        int | None, typer.Option(min=0, max=MOST, help="Replay one run's cut at this position.")
    ] = None,
    stages: Annotated[
        bool,
        typer.Option(
            "--stages", help="Count one run's cuts by the stage of the transaction (SCA Table 1)."
        ),
    ] = False,
    cores: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Cores, each with a structure of its own: 2 in a plan."),
    ] = None,
    sharing: Annotated[
        str | None,
        typer.Option(
            help="Lines of counters: apart, packed (log and data share), interleaved (cores too)."
        ),
    ] = None,
    transactions: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Transactions of each core.")
    ] = None,
    transaction_size: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of a transaction's item: 64 to 4K."),
    ] = None,
    footprint: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Size of each structure after setup: 4K to 1G."),
    ] = None,
    mutant: Annotated[
        str | None, typer.Option(help="Plant this mistake in the program's transactions.")
    ] = None,
    no_log: Annotated[
        bool,
        typer.Option("--no-log", help="The program keeps no undo log; the design's own stays."),
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**50, help="Of keys, evictions, delays and samples.")
    ] = 1,
    recovery_cuts: Annotated[
        int,
        typer.Option(
            min=0, max=MOST, help="Go on after one cut in so many and cut again; 0: none."
        ),
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
    pool: Annotated[
        Path | None,
        typer.Option(help="RECORDING: the mapped file to cut.", rich_help_panel=REAL, **PATH),
    ] = None,
    recover: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="The program's recovery and check, with {pool} for the file and {acks} for what "
            "had been printed.",
            rich_help_panel=REAL,
        ),
    ] = None,
    ok: Annotated[
        str, typer.Option(help="Exit statuses that are no violation.", rich_help_panel=REAL)
    ] = "0",
    start: Annotated[
        str | None,
        typer.Option(
            metavar="MARK|ROW",
            help="First cut; by default where the recovery first copes with what was fenced.",
            rich_help_panel=REAL,
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="For all of it.", rich_help_panel=REAL)
    ] = "50s",
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="For one recovery; by default 50 of its own.", rich_help_panel=REAL
        ),
    ] = None,
    memory_limit: Annotated[
        str, typer.Option(metavar="BYTES", help="For one recovery.", rich_help_panel=REAL)
    ] = "4G",
    replay: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="Try one image of a report.", rich_help_panel=REAL),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Leave each cause's two images here, one that fails and one that passes.",
            rich_help_panel=REAL,
            **PATH,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="A page with a timeline of each cause.", rich_help_panel=REAL, **PATH),
    ] = None,
    lint: Annotated[
        bool,
        typer.Option(
            "--lint",
            help="Say, without any run, what is never flushed or flushed for nothing.",
            rich_help_panel=REAL,
        ),
    ] = False,
    no_source: Annotated[
        bool,
        typer.Option("--no-source", help="Go on without lines of code.", rich_help_panel=REAL),
    ] = False,
    machine: Machine = "sca",
    settings: Set = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
    ] = 0,
    json_to: JsonTo = None,
) -> None:
    """Cut the power at every position of a run, recover, and look at what is left.

    Each design is tried by a plan: runs with several seeds, tiny caches and queues, one core and
    two, and who shares lines of counters. The second table says what the verdict rests on.

    [bold]Examples[/bold]

    sardonyx crash btree --designs sca,fca,no-atomicity

    sardonyx crash all --designs esd+sca --platform eadr --thorough 5m

    sardonyx crash queue --designs sca --cores 4 --mutant no-fence-after-log

    sardonyx crash btree --designs sca --set encryption.global_counter=paper --json crash.json

    sardonyx crash app.parquet --pool app.pool --recover 'app-check {pool}'
    """
    if is_recording(workloads):
        crash_recording(
            Asked(
                recording=workloads[0],
                pool=pool,
                recover=recover,
                ok=ok,
                platform=platform,
                tear=tear,
                start=start,
                budget=_seconds("--budget", budget),
                time_limit=None if time_limit is None else _seconds("--time-limit", time_limit),
                memory_limit=size_in_bytes("--memory-limit", memory_limit, 1 << 20),
                replay=replay,
                keep=keep,
                seed=seed,
                jobs=jobs,
                source=not no_source,
                json_to=json_to,
                designs=_given(ctx, designs),
                html=html,
                lint=lint,
                machine=machine,
            )
        )
        return
    for option, value in (("--pool", pool), ("--recover", recover), ("--replay", replay)):
        if value is not None:
            raise _core.SardonyxError(
                f"{option}: is for a recording, and {workloads[0]} is no file; record the program "
                "first: sardonyx trace record --level cpu --pc -o REC.parquet -- PROGRAM"
            )
    chosen = check_designs([name.strip() for name in designs.split(",") if name.strip()])
    if platform not in PLATFORMS:
        raise _core.SardonyxError(f"--platform: {unknown('platform', platform, PLATFORMS)}")
    if tear not in TEARS:
        raise _core.SardonyxError(f"--tear: {unknown('tear', tear, TEARS)}")
    if tear != "lines" and platform != "adr":
        raise _core.SardonyxError(f"--tear {tear}: is for --platform adr; {platform} says its own")
    if no_log and mutant is not None:
        raise _core.SardonyxError(f"--no-log: there is no log to plant {mutant} in; leave one out")
    if no_log and stages:
        raise _core.SardonyxError("--no-log: --stages are those of a log; leave one out")
    if tear != "lines" and stages:
        raise _core.SardonyxError(f"--tear {tear}: --stages counts what whole lines leave")
    if sharing is not None and sharing not in SHARINGS:
        raise _core.SardonyxError(f"--sharing: {unknown('sharing', sharing, SHARINGS)}")
    count = _count(cuts)
    if cut is not None and count is not None:
        raise _core.SardonyxError(f"--cut {cut}: is one cut, and --cuts {cuts} asks for others")
    one_run = once or cut is not None or stages
    if sharing is not None and not one_run:
        raise _core.SardonyxError(f"--sharing {sharing}: is a run's own; add --once")
    if thorough is not None and one_run:
        raise _core.SardonyxError(f"--thorough {thorough}: is for the plan; leave --once out")
    seconds = None if thorough is None else _seconds("--thorough", thorough)
    item_bytes = None
    if transaction_size is not None:
        item_bytes = size_in_bytes("--transaction-size", transaction_size, 64, 4096)
    region = None if footprint is None else size_in_bytes("--footprint", footprint, 4096, 2**30)
    overrides = parse_settings(settings or ())
    programs = known_programs() if workloads == ["all"] else workloads
    check_json_target(json_to)
    plan = [
        TrialQuestion(
            program=program,
            design=design,
            machine=machine,
            overrides=overrides,
            seed=seed,
            cores=cores,
            transactions=transactions,
            item_bytes=item_bytes,
            footprint=region,
            mutant=mutant,
            platform=platform,
            tear=tear,
            cuts=count,
            recovery_cuts=recovery_cuts,
            full_one_in=full,
            threads=jobs,
            thorough_seconds=seconds,
            software_log=not no_log,
        )
        for program in programs
        for design in chosen
    ]
    if one_run:
        single = [
            CrashQuestion(
                program=ProgramSource(
                    name=asked.program,
                    item_bytes=asked.item_bytes or 64,
                    footprint=asked.footprint or 16_384,
                    transactions=asked.transactions or 200,
                    seed=seed,
                    software_log=not no_log,
                ),
                cut=cut,
                cores=asked.cores or 1,
                sharing=sharing or "apart",
                **asked.model_dump(include=SHARED),
            )
            for asked in plan
        ]
        _say_cost(max(_core.crash_memory(q.model_dump_json()) for q in single))
    else:
        _say_cost(max(_core.crash_trial_memory(q.model_dump_json()) for q in plan))
    with Watcher(err, unit="") as watch:
        runs = explore(single, watch, stages=stages) if one_run else trials(plan, watch)
    people = for_people(json_to)
    if stages:
        _show_stages(people, runs)
    else:
        _show(people, runs, machine, settings or (), no_log=no_log)
    write_json(json_to, {"sardonyx": _core.VERSION, "runs": runs})
    if any(run.get("fails") for run in runs):
        raise typer.Exit(CHECK_FAILED)


def _given(ctx: typer.Context, designs: str) -> tuple[str, ...]:
    """The designs of a recording: none, unless they are asked for."""
    source = ctx.get_parameter_source("designs")
    if source is None or source.name == "DEFAULT":
        return ()
    return tuple(check_designs([name.strip() for name in designs.split(",") if name.strip()]))


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


def _seconds(option: str, text: str) -> float:
    """Seconds from ``90s``, ``10m`` or ``2h``."""
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or len(number) > 6:
        raise _core.SardonyxError(f"{option} {text}: is no time; give 90s, 10m or 2h")
    return float(int(number) * UNITS[unit])


def _plain(title: str = "") -> Table:
    return Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="dim"
    )


def _show(
    people: Console,
    runs: list[dict[str, Any]],
    machine: str,
    settings: Sequence[str],
    *,
    no_log: bool,
) -> None:
    people.print(_verdicts(runs))
    seconds = sum(run["seconds"] for run in runs)
    speed = sum(run["cuts"] + run["recovery_cuts"] for run in runs) / max(seconds, 1e-9)
    people.print(Text(f"{LEGEND}; {speed:,.0f} cuts/s", style="dim"))
    people.print()
    people.print(_exercised(runs))
    for run in runs:
        if run["verdict"] == "not exercised":
            missing = ", ".join(run["not_exercised"])
            people.print(
                Text(
                    f"{run['program']}, {run['design']}: nothing was found, and these were not "
                    f"exercised: {missing}; give more --transactions, another --seed or --thorough",
                    style="red",
                ),
                soft_wrap=True,
            )
    for run in runs:
        for violation in run["violations"]:
            again = _replay(run, violation, machine, settings, no_log=no_log)
            _tell(people, violation, again)


def _verdicts(runs: list[dict[str, Any]]) -> Table:
    first = runs[0]
    planted = f", mutant {first['mutant']}" if first["mutant"] else ""
    runs_made = sum(run.get("runs", 1) for run in runs)
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
            Text(run["verdict"], style=VERDICTS[run["verdict"]]),
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
        needed = [mechanism in run.get("required", ()) for run in runs]
        if not any(counts) and not any(needed):
            continue
        cells = [
            Text(f"{count:,}", style="red" if need and not count else "")
            if count or need
            else Text("-", style="dim")
            for count, need in zip(counts, needed, strict=True)
        ]
        table.add_row(Text(mechanism), *cells)
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


def _replay(
    run: dict[str, Any],
    violation: dict[str, Any],
    machine: str,
    settings: Sequence[str],
    *,
    no_log: bool,
) -> str:
    """The command that makes the violation's cut alone, and looks at it in full."""
    own = violation.get("run", run)
    passes = run["passes"][violation["pass"]]["settings"] if "pass" in violation else []
    words = ["sardonyx", "crash", own["program"], "--designs", own["design"]]
    for option, value in (
        ("--platform", run["platform"]),
        ("--tear", run["tear"]),
        ("--cores", own["cores"]),
        ("--sharing", own["sharing"]),
        ("--transactions", own["transactions"]),
        ("--transaction-size", own["transaction_bytes"]),
        ("--footprint", own["footprint_bytes"]),
        ("--mutant", own["mutant"]),
        ("--seed", own["seed"]),
        ("--machine", machine),
        *(("--set", f"{key}={value}") for key, value in passes),
        *(("--set", setting) for setting in settings),
        ("--recovery-cuts", None if violation["recovery_cut"] is None else 1),
        ("--cut", violation["cut"]),
    ):
        words += [] if value is None else [option, str(value)]
    words += ["--no-log"] if no_log else []
    return shlex.join(words)


def _tell(people: Console, violation: dict[str, Any], again: str) -> None:
    """The first violation of a kind: how often, where, and the history that led there."""
    head, *story = violation["history"]
    people.print()
    people.print(Text(f"{head} ({violation['count']:,} times)", style="bold"), soft_wrap=True)
    for line in story:
        people.print(Text(line), soft_wrap=True)
    if violation["cut"] is not None:
        people.print(Text(f"  replay: {again}"), soft_wrap=True)
