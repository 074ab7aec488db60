"""``sardonyx crash-test``: a real program's own recovery, run on what each cut could leave.

A thin call of ``crates/crash-test``; docs/crash-real.md explains it. Left out: everything that
computes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    NOTHING_SAID,
    PATH,
    check_json_target,
    check_target,
    err,
    for_people,
    note,
    seconds_in,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.crash_inside import check_depth, given, inside, replays
from sardonyx.cli.crash_lint import show_lint
from sardonyx.cli.crash_threads import MOST as MOST_ORDERS
from sardonyx.cli.crash_threads import add, check_orders, held, in_orders, show_orders
from sardonyx.cli.forms import Options, Work
from sardonyx.cli.help import rare
from sardonyx.cli.options import JsonTo, Machine
from sardonyx.cli.progress import watched
from sardonyx.files import write_text
from sardonyx.questions import CrashTestQuestion
from sardonyx.report.checks import Baseline, accept, baseline_of, junit, read_baseline, sarif
from sardonyx.report.recovery import render
from sardonyx.runs.jobs import check_designs
from sardonyx.runs.recoveries import (
    ACKNOWLEDGED,
    check_creation,
    check_platform,
    check_tear,
    crash_real,
    statuses,
    words,
)
from sardonyx.runs.sources import unknown

#: Suspects and causes that people are shown; the JSON has all.
SHOWN = 3
#: Cuts below each design, and after one in how many the recovery is run.
CUTS = 200
EVERY = 4
#: What is for one of the options only.
ORACLE = {"apply": "without --operations", "acknowledged": "without --operations"}
ORACLE |= {"all": "without --lint"}
#: Platforms that are a file on a disk.
DISKS = ("pages", "sectors")


@dataclass(frozen=True, kw_only=True)
class CrashTest(Options):
    """The options of ``sardonyx crash-test``."""

    recording: Annotated[
        str,
        typer.Argument(help="A recording of sardonyx trace record --pc."),
    ]
    pool: Annotated[
        list[Path],
        typer.Option(
            help="The mapped file to cut, or a folder of such files; may be repeated.", **PATH
        ),
    ]
    recover: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="The program's recovery and check, with {pool} for the file ({pool2} for the "
            "second, {pools} for the folder of all) and {acks} for what had been printed.",
        ),
    ] = None
    operations: Annotated[
        Path | None,
        typer.Option(
            help="The operations of the recorded run, one a line: what --recover prints must be "
            "what the program leaves of a beginning of them.",
            **PATH,
        ),
    ] = None
    apply: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Makes a pool, {pool}, of the operations in a file, {operations}.",
        ),
    ] = None
    acknowledged: Annotated[
        str,
        typer.Option(
            help="How operations were promised: by a printed line each (lines), or not (none)."
        ),
    ] = "lines"
    ok: Annotated[str, typer.Option(help="Exit statuses that are no violation.")] = "0"
    lint: Annotated[
        bool,
        typer.Option(
            "--lint", help="Without any run, list what is never flushed or flushed for nothing."
        ),
    ] = False
    all: Annotated[
        bool,
        typer.Option("--all", help="With --lint: also what a library did to set the pool up."),
    ] = False
    replay: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Try only this image, as a report names it.")
    ] = None
    platform: Annotated[
        str,
        typer.Option(
            help="What survives a cut: persistent memory (adr; eadr with the caches), or a file on "
            "a disk, by pages or by sectors; auto: pages if it only syncs (msync, fsync), else adr."
        ),
    ] = "auto"
    tear: Annotated[
        str,
        typer.Option(
            help="What a cut leaves whole while a line is being accepted: the line (lines) "
            "or each 8 bytes (words)."
        ),
    ] = "lines"
    start: Annotated[
        str | None,
        typer.Option(
            metavar="MARK|ROW",
            help="First cut; by default where the recovery first copes with what was fenced.",
        ),
    ] = None
    creation: Annotated[
        str,
        typer.Option(
            help="While the pool is made the recovery may refuse it: by the exit status that the "
            "untouched pool gets (status), by any (orderly); or such cuts are not tried (skip)."
        ),
    ] = "status"
    recovery_depth: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Cut the recovery too, and its own recovery, N deep; each depth gets the "
            "budget again.",
        ),
    ] = 0
    thread_orders: Annotated[
        int,
        typer.Option(
            min=0,
            max=MOST_ORDERS,
            metavar="N",
            help="Cut up to N other orders of the threads too, which the program could "
            "have taken; for the same budget again.",
        ),
    ] = 0
    thread_order: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD@ROW", help="Cut only this order of the threads, as a report names it."
        ),
    ] = None
    assume_persisted: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE:LINE",
            help="Count the stores of this line as persistent at once; may be repeated.",
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(help="Causes that are accepted, from --write-baseline.", **PATH),
    ] = None
    write_baseline: Annotated[
        Path | None,
        typer.Option(help="Write the causes found here, as accepted from now on.", **PATH),
    ] = None
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Total time, from the first recovery on.")
    ] = "50s"
    time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit of one recovery; default: 50 times as long as it takes without a cut.",
        ),
    ] = None
    memory_limit: Annotated[
        str, typer.Option(metavar="BYTES", help="Memory limit of one recovery.")
    ] = "4G"
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Leave each cause's two images here, one that fails and one that passes.", **PATH
        ),
    ] = None
    html: Annotated[
        Path | None, typer.Option(help="Write a page with a timeline of each cause.", **PATH)
    ] = None
    sarif: Annotated[
        Path | None,
        typer.Option(help="Write the causes for code scanning, as SARIF 2.1.0.", **PATH),
    ] = None
    junit: Annotated[
        Path | None, typer.Option(help="Write the causes as failed tests, as JUnit's XML.", **PATH)
    ] = None
    designs: Annotated[
        str | None,
        typer.Option("--designs", "-d", help="Say too what a cut leaves below these designs."),
    ] = None
    machine: Machine = "sca"
    no_source: Annotated[
        bool, typer.Option("--no-source", help="Report without lines of code.")
    ] = False
    seed: Annotated[
        int, typer.Option(min=0, max=2**50, help="Seed of the images that are drawn.")
    ] = 1
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=0, max=1024, help="Threads; 0 for one a processor.")
    ] = 0
    json_to: JsonTo = None


@rare(
    "ok",
    "all",
    "tear",
    "start",
    "creation",
    "recovery_depth",
    "thread_orders",
    "thread_order",
    "assume_persisted",
    "baseline",
    "write_baseline",
    "memory_limit",
    "sarif",
    "junit",
    "no_source",
    "seed",
    "jobs",
    "machine",
    "keep",
    "time_limit",
)
def crash_test(asked: CrashTest) -> Work:
    """Cut a recorded program at every fence, and run its own recovery on what could be left.

    What fails is brought down to the stores that matter, and those to lines of code.

    [bold]Examples[/bold]

    sardonyx crash-test app.parquet --pool data.pool --recover 'app-check {pool}'

    sardonyx crash-test app.parquet --pool data.pool --recover 'app-check {pool}' --html app.html

    sardonyx crash-test app.parquet --pool data.pool --recover 'app {pool} print' --operations ops
    --apply 'app {pool} run {operations}'

    sardonyx crash-test app.parquet --pool data.pool --pool log.pool --recover
    'app-check {pool} {pool2}'

    sardonyx crash-test app.parquet --pool data.pool --lint
    """
    check_json_target(asked.json_to, [asked.recording])
    if asked.lint:
        return Work(
            partial(
                show_lint,
                asked.recording,
                [str(pool) for pool in asked.pool],
                source=not asked.no_source,
                machine=asked.machine,
                everything=asked.all,
                json_to=asked.json_to,
            ),
            "with --lint",
        )
    if asked.replay is not None:
        question = CrashTestQuestion(replay=asked.replay, **_shared(asked))
        return Work(partial(_replay, question, asked.json_to), "with --replay", ORACLE)
    check_tear(asked.tear, "--tear: ")
    check_creation(asked.creation, "--creation: ")
    shared = _shared(asked)
    check_depth(shared["recover"], asked.recovery_depth)
    baseline = None if asked.baseline is None else read_baseline(asked.baseline)
    question = CrashTestQuestion(
        tear=asked.tear == "words",
        start=asked.start,
        creation=asked.creation,
        seed=asked.seed,
        threads=asked.jobs,
        **shared,
    )
    designs: Sequence[str] = ()
    machine = ""
    form = "without --designs"
    if asked.designs is not None:
        form, machine = "with --designs", asked.machine
        designs = check_designs([name.strip() for name in asked.designs.split(",") if name.strip()])
        if asked.platform in DISKS:
            raise _core.SardonyxError(
                f"--designs: are of persistent memory, and --platform {asked.platform} is a file "
                "on a disk; leave one of them out"
            )
        if asked.platform == "auto":
            question = question.model_copy(update={"platform": "adr"})
    check_orders(asked.thread_orders, asked.operations, designs)
    if asked.thread_order is not None and (asked.thread_orders or asked.recovery_depth or designs):
        raise _core.SardonyxError(
            "--thread-order: is one order by itself; leave out --thread-orders, --recovery-depth "
            "and --designs"
        )
    if asked.operations is not None and (asked.recovery_depth or designs):
        raise _core.SardonyxError(
            "--operations: what a recovery that is cut, or below a design, prints is not held to "
            "them; leave it out, or --recovery-depth and --designs"
        )
    for name in ("html", "sarif", "junit", "write_baseline"):
        target = getattr(asked, name)
        if target is not None:
            check_target(target, [asked.recording], f"--{name.replace('_', '-')} ")
    return Work(partial(_search, asked, question, designs, machine, baseline), form, ORACLE)


def _shared(asked: CrashTest) -> dict[str, Any]:
    """What the search and the replay of an image ask."""
    if asked.recover is None:
        raise _core.SardonyxError(
            f"{asked.recording}: say also --recover 'CMD {{pool}}': the command that opens a copy "
            "of the pool and checks what it finds; or --lint"
        )
    check_platform(asked.platform, "--platform: ")
    if asked.keep is not None and asked.keep.exists() and any(asked.keep.iterdir()):
        raise _core.SardonyxError(f"--keep {asked.keep}: is not empty; name another folder")
    limit = asked.time_limit
    return {
        "recording": asked.recording,
        "pool": str(asked.pool[0]),
        "more_pools": tuple(str(pool) for pool in asked.pool[1:]),
        "recover": words(asked.recover, "--recover "),
        "ok": statuses(asked.ok, "--ok "),
        "time_limit": None if limit is None else seconds_in("--time-limit", limit),
        "memory_limit": size_in_bytes("--memory-limit", asked.memory_limit, 1 << 20),
        "platform": asked.platform,
        "assume_persisted": tuple(asked.assume_persisted or ()),
        "budget": seconds_in("--budget", asked.budget),
        "keep": str(asked.keep) if asked.keep else None,
        "source": not asked.no_source,
        "thread_order": asked.thread_order,
        **_oracle(asked),
    }


def _oracle(asked: CrashTest) -> dict[str, Any]:
    """What the output of a recovery is held to, if it is."""
    if asked.operations is None:
        return {}
    if asked.apply is None:
        raise _core.SardonyxError(
            "--operations: say also --apply 'CMD {pool} {operations}': the command that makes a "
            "pool of the operations in a file"
        )
    if "{acks}" in str(asked.recover):
        raise _core.SardonyxError(
            "--operations: what had been printed is looked at without the recovery; "
            "leave {acks} out of --recover"
        )
    if asked.acknowledged not in ACKNOWLEDGED:
        raise _core.SardonyxError(
            f"--acknowledged: {unknown('way', asked.acknowledged, ACKNOWLEDGED)}"
        )
    return {
        "operations": str(asked.operations),
        "apply": words(asked.apply, "--apply ", ("{pool}", "{operations}")),
        "acknowledged": asked.acknowledged,
    }


def _command(asked: CrashTest, platform: str) -> list[str]:
    """The command that runs the recovery on one image, but for the image's name."""
    parts = ["sardonyx", "crash-test", asked.recording]
    parts += [part for pool in asked.pool for part in ("--pool", str(pool))]
    parts += ["--recover", str(asked.recover)]
    if asked.operations is not None:
        parts += ["--operations", str(asked.operations), "--apply", str(asked.apply)]
        if asked.acknowledged != "lines":
            parts += ["--acknowledged", asked.acknowledged]
    if asked.ok != "0":
        parts += ["--ok", asked.ok]
    if asked.platform != "auto" or asked.designs is not None or platform != "adr":
        parts += ["--platform", platform]
    if asked.thread_order is not None:
        parts += ["--thread-order", asked.thread_order]
    return parts


def _found(question: CrashTestQuestion) -> dict[str, Any]:
    return watched(
        err, Path(question.recording).name, lambda p: crash_real(question, p), unit="recoveries"
    )


def _replay(question: CrashTestQuestion, json_to: str | None) -> None:
    """Run the recovery on one image."""
    found = _found(question)
    _show_replayed(for_people(json_to), found)
    _end(found, json_to)


def _search(
    asked: CrashTest,
    question: CrashTestQuestion,
    designs: Sequence[str],
    machine: str,
    baseline: Baseline | None,
) -> None:
    """Run the recovery on every image that a cut of the recording could leave."""
    json_to = asked.json_to
    found = _found(question)
    again = _command(asked, found["platform"])
    if asked.thread_orders and found["start"] is not None:
        question = question.model_copy(update={"platform": found["platform"]})
        found["orders"] = in_orders(question, found, asked.thread_orders)
        add(found, found["orders"])
    for cause in found["causes"]:
        assumed = [part for place in cause["assumed"] for part in ("--assume-persisted", place)]
        order = ["--thread-order", cause["order"]] if "order" in cause else []
        cause["replay"] = shlex.join([*again, *assumed, *order, "--replay", cause["image"]])
        if asked.keep is not None and "order" not in cause:
            kept = asked.keep / f"{cause['kept']}-fails.pool"
            cause["gdb"] = gdb(asked, kept, [pool["name"] for pool in found["pools"]])
    if asked.recovery_depth and found["start"] is not None:
        question = question.model_copy(update={"platform": found["platform"]})
        found["inside"] = inside(question, found, asked.recovery_depth, asked.keep)
        for one in found["inside"]:
            replays(one, str(asked.recover))
            found["fails"] = found["fails"] or bool(one["violations"])
    accept(found, baseline)
    people = for_people(json_to)
    _show(people, found)
    if "inside" in found:
        _show_inside(people, found["inside"], asked.keep is not None)
    if designs and found["start"] is not None:
        found["below"] = below(question, found, machine, designs)
        _show_designs(people, found["below"], machine)
    if asked.html is not None:
        write_text(asked.html, render(found, _core.VERSION))
    if asked.sarif is not None:
        write_text(asked.sarif, sarif(found, _core.VERSION))
    if asked.junit is not None:
        write_text(asked.junit, junit(found))
    if asked.write_baseline is not None:
        write_text(asked.write_baseline, baseline_of(found))
    _end(found, json_to)


def gdb(asked: CrashTest, image: Path, names: Sequence[str]) -> str:
    """A command that runs the recovery under gdb on a copy of an image that was kept.

    The image is a file, or a folder with a file of each of the names if they are several.
    """
    copy = image.with_suffix(".gdb")
    several = len(names) > 1
    pools = [str(copy / name) for name in names] if several else [str(copy)]
    folder = copy if several else copy.parent
    command = given(str(asked.recover), pools, folder, "/dev/null")
    if words(str(asked.recover))[0] == "/bin/sh":
        command = shlex.join(["/bin/sh", "-c", command])
    made = ["cp", *(["-r"] if several else []), str(image), str(copy)]
    return f"{shlex.join(made)} && gdb --args {command}"


def _end(found: dict[str, Any], json_to: str | None) -> None:
    write_json(json_to, {"sardonyx": _core.VERSION} | found)
    if found["fails"] and not found.get("all_accepted"):
        raise typer.Exit(CHECK_FAILED)
    if found.get("unsaid"):
        raise typer.Exit(NOTHING_SAID)


def below(
    question: CrashTestQuestion, found: dict[str, Any], machine: str, designs: Sequence[str]
) -> list[dict[str, Any]]:
    """What of the pool can be read after a cut below each design, and what the recovery does."""
    told: dict[str, list[dict[str, Any]]] = json.loads(
        _core.crash_designs(
            question.model_dump_json(),
            (found["start"]["row"], found["time_limit_s"]),
            machine,
            list(designs),
            (CUTS, EVERY),
        )
    )
    return told["designs"]


def _show_designs(people: Console, designs: list[dict[str, Any]], machine: str) -> None:
    first = designs[0]
    tried = first["recovered"][0][0]
    people.print(
        f"\nThe pool below a design of {machine}, the program knowing nothing of counters, and "
        f"with its {first['marks']:,} commit stores marked: of {first['plain']['cuts']} cuts "
        f"those with unreadable lines, how many of {first['plain']['lines']:,} lines at most, and "
        f"after how many of {tried} cuts the recovery copes"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("design", "cuts", "lines", "copes", "marked: cuts", "lines", "copes",
                   "writes", "time"):  # fmt: skip
        table.add_column(column, justify="left" if column == "design" else "right")
    for one in designs:
        cells = []
        for run, (_, coped) in zip((one["plain"], one["marked"]), one["recovered"], strict=True):
            cells += [run["cuts_with_unreadable"], run["most_unreadable"], coped]
        for key in ("writes", "nanoseconds"):
            plain = one["plain"][key]
            cells.append(f"{one['marked'][key] / plain - 1:+.1%}" if plain else "")
        table.add_row(one["design"], *map(str, cells))
    people.print(table)


def _show_inside(people: Console, recoveries: list[dict[str, Any]], kept: bool) -> None:
    """What cuts inside the recovery showed."""
    images, cuts = (sum(one[key] for one in recoveries) for key in ("images", "cuts_tried"))
    people.print(
        f"\ninside the recovery: {len(recoveries)} recoveries recorded, {images:,} images at "
        f"{cuts:,} cuts of theirs",
        soft_wrap=True,
    )
    if not recoveries:
        people.print(
            "the recovery changed no image that it was seen on, so there is nothing to cut"
        )
    failed = [one for one in recoveries if one["violations"]]
    if recoveries and not failed:
        people.print(Text("no violation inside the recovery", style="green"))
    for one in failed[:SHOWN]:
        people.print(f"of the image {one['image']}, {one['depth']} deep:", soft_wrap=True)
        for number, cause in enumerate(one["causes"][:1], 1):
            _show_cause(people, number, cause)
    if failed and not kept:
        note("the recordings of these recoveries are gone; --keep FOLDER leaves them for --replay")


def _show_replayed(people: Console, found: dict[str, Any]) -> None:
    people.print(
        Text.assemble(
            ("fails" if found["fails"] else "passes", "red" if found["fails"] else "green"),
            f": {found['ended']} at cut {found['cut']['number']} (row {found['cut']['row']:,})",
        ),
        soft_wrap=True,
    )
    if found["said"]:
        people.print(found["said"], soft_wrap=True)


def _show(people: Console, found: dict[str, Any]) -> None:
    for line in found["notes"]:
        note(line)
    people.print(tried(found), soft_wrap=True)
    if "orders" in found:
        show_orders(people, found["orders"])
    if (oracle := found["oracle"]) is not None:
        people.print(
            f"{oracle['operations']:,} operations: {oracle['prefixes']:,} beginnings of them were "
            f"run without a cut, which leave {oracle['outputs']:,} different outputs",
            soft_wrap=True,
        )
    if found["start"] is not None and not found["finished"]:
        left = ", ".join(found["passes_left"])
        people.print(f"the plan was not finished; raise --budget. Skipped: {left}", soft_wrap=True)
    if found["not_cut"]:
        people.print(f"not cut: {', '.join(found['not_cut'])}", soft_wrap=True)
    if found["unreduced"]:
        kinds = f"{found['unreduced']} kind{'s' if found['unreduced'] > 1 else ''}"
        people.print(f"{kinds} of violations not brought down to few lines: --budget ended first")
    if found["unsaid"]:
        said = Text.assemble((found["verdict"], "yellow"), f": {found['unsaid']}")
        people.print(said, soft_wrap=True)
        return
    if not found["violations"]:
        people.print(Text(verdict(found), style="green"))
        orders = found["threads"] > 1 and found["platform"] not in DISKS and "orders" not in found
        if orders and found["processes"] == 1:
            note("threads are cut in the order of the recording; --thread-orders 8 tries others")
        return
    count = found["violations"]
    people.print(
        Text.assemble(
            (f"{count:,} violation{'s' if count > 1 else ''}", "red"),
            f" of {len(found['causes']):,} cause{'s' if len(found['causes']) != 1 else ''}"
            f", the first after {found['first_violation_s']:.1f} s",
        ),
    )
    if found["has_places"] and found["suspects"]:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("look here first", "in", "it persisted"):
            table.add_column(column)
        for suspect in found["suspects"][:SHOWN]:
            frame = suspect["frame"]
            function = (frame or {}).get("function") or ""
            through = f", in {suspect['through']}" if suspect["through"] else ""
            table.add_row(suspect["place"], function + through, suspect["role"])
        people.print(table)
    elif not found["has_places"]:
        note("the recording has no places in the program; record with --pc to see lines of code")
    accepted = sum(cause["accepted"] for cause in found["causes"])
    new = [(n, cause) for n, cause in enumerate(found["causes"], 1) if not cause["accepted"]]
    if accepted:
        people.print(f"{accepted} of {len(found['causes'])} causes are accepted by the baseline")
    for number, cause in new[:SHOWN]:
        people.print()
        _show_cause(people, number, cause)
    more = len(new) - SHOWN
    if more > 0:
        people.print(f"\nand {more} more causes; --json has all")
    if found["assumed"]:
        at = ", ".join(found["assumed"])
        people.print(
            f"\nto find what these causes hide, later rounds counted stores at {at} as persistent "
            "at once",
            soft_wrap=True,
        )


def tried(found: dict[str, Any]) -> str:
    """How much was tried, in how much time."""
    start = found["start"]
    where = ""
    if start is not None:
        mark = f"mark {start['mark']}" if start["mark"] else f"row {start['row']:,}"
        where = (
            f" ({found['cuts_from_start']:,} from {mark} on, "
            f"{found['moments_tried']:,} of {found['moments']:,} kinds of moments)"
        )
    alone = found["undisturbed_s"]
    return (
        f"{found['images']:,} images at {found['cuts_tried']:,} of {found['cuts']:,} cuts{where}, "
        f"{found['recoveries']:,} recoveries in {found['seconds']:.1f} s "
        f"({found['recoveries_per_second']:.0f} a second"
        + (f", {alone * 1e3:.0f} ms alone)" if alone is not None else ")")
    )


def verdict(found: dict[str, Any]) -> str:
    """That nothing failed, and whether that is of the whole plan and of all that was stored."""
    whole = found["finished"] and not found["not_cut"]
    return "no violation" if whole else "no violation in what was tried"


def _show_cause(people: Console, number: int, cause: dict[str, Any]) -> None:
    people.print(
        Text.assemble(
            (f"{number}. ", "bold"),
            "while the pool is made: " if cause["creation"] else "",
            f"{held(cause)}: " if "order" in cause else "",
            cause["summary"],
            f" ({cause['violations']} violations)",
        ),
        soft_wrap=True,
    )
    for role in ("early", "late"):
        for store in cause[role][:SHOWN]:
            calls = " < ".join(
                f"{frame['function'] or '?'}"
                + (f" {Path(frame['file']).name}:{frame['line']}" if frame["line"] else "")
                for frame in store["stack"][:6]
            )
            people.print(
                f"   {role}: {store['bytes']} bytes at {store['pool'] or 'pool'} offset "
                f"{store['offset']:#x}, "
                f"row {store['row']:,}"
                + (f" ({store['fate']})" if store["fate"] else "")
                + (f": {calls}" if calls else ""),
                soft_wrap=True,
            )
    cut = cause["cut"]
    said = cause["said"].splitlines()
    people.print(
        f"   cut {cut['number']} at row {cut['row']:,}"
        + (f" after mark {cut['mark']}" if cut["mark"] else "")
        + f": {cause['ended']}"
        + (f": {said[-1]}" if said else ""),
        soft_wrap=True,
    )
    people.print(f"   {cause['replay']}", soft_wrap=True)
    if "gdb" in cause:
        people.print(f"   {cause['gdb']}", soft_wrap=True)
