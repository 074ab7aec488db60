"""``sardonyx trace record``: run a program, show how far it is, say what was written.

What happens in between is native (crates/record, crates/recorder); docs/crash-test/recorder.md
explains it.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    MOST,
    PATH,
    check_json_target,
    ended,
    ending_patiently,
    err,
    write_json,
)
from sardonyx.cli.facts import facts_of, writable
from sardonyx.cli.forms import Options
from sardonyx.cli.help import rare
from sardonyx.cli.options import JsonTo
from sardonyx.questions import RecordRequest

PLUGIN = Path(__file__).parents[1] / "libsardonyx_recorder.so"
#: The emulator's places: in the installed package, and where `make qemu` puts it in a checkout.
EMULATORS = (
    Path(__file__).parents[1] / "qemu-x86_64",
    Path(__file__).parents[3] / "target" / "qemu" / "bin" / "qemu-x86_64",
)
#: Instructions a second of a program without us, for the live counter only (*assumed*: a core of
#: 3 GHz at one instruction a cycle). docs/crash-test/recorder.md has slowdowns that were measured.
NATIVE_RATE = 3e9
LOOK_EVERY = 0.25
#: A shell's status of a program that a signal ended is this plus the signal's number.
BY_SIGNAL = 128
#: Settings of the command line: words after the program's name belong to the program.
SETTINGS: dict[str, Any] = {
    "context_settings": {"ignore_unknown_options": True, "allow_interspersed_args": False},
    "epilog": "The program's input and output are its own; the trace appears when it has ended.",
}


@dataclass(frozen=True, kw_only=True)
class Record(Options):
    """The options of ``sardonyx trace record``."""

    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="What to run, after --.")
    ]
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The trace; by default PROGRAM.parquet, here.", **PATH),
    ] = None
    level: Annotated[
        str | None,
        typer.Option(
            help="memory: below the last-level cache. cpu: every load and store. By default "
            "memory, and cpu with --pc or --acks."
        ),
    ] = None
    l1: Annotated[str, typer.Option(help="Each core's first level, SIZE:WAYS.")] = "32K:8"
    l2: Annotated[str, typer.Option(help="Each core's second level, SIZE:WAYS.")] = "256K:8"
    llc: Annotated[str, typer.Option(help="The shared last level, SIZE:WAYS, or none.")] = "16M:16"
    non_inclusive: Annotated[
        bool, typer.Option("--non-inclusive", help="The last level does not include the others.")
    ] = False
    cores: Annotated[
        int, typer.Option(min=0, max=1024, help="Cores; threads take turns on them.")
    ] = 4
    pages: Annotated[
        str | None,
        typer.Option(
            help="Where pages lie: sequential (frames in order of first touch), random[:SEED], "
            "pagemap (the kernel's; needs root), or, at level cpu only, virtual (the program's "
            "addresses). By default sequential, and virtual at level cpu."
        ),
    ] = None
    reuse: Annotated[
        str,
        typer.Option(
            help="Which free frame a page gets: last-freed, first-freed, or never one that "
            "another page had (with --pages sequential)."
        ),
    ] = "last-freed"
    clearing: Annotated[
        str,
        typer.Option(
            help="How the kernel clears a new page: whole-lines (overwritten, not fetched, as "
            "processors with fast strings do), fetched (each line is read first), or none (left "
            "out)."
        ),
    ] = "whole-lines"
    kernel_instructions: Annotated[
        str,
        typer.Option(
            metavar="FAULT:LINE",
            help="Instructions of the kernel for each page that it clears, and for each of "
            "its 64 lines; twice as many for a copied line.",
        ),
    ] = "1000:8"
    memory: Annotated[
        str, typer.Option(help="Size of physical memory for random page placement.")
    ] = "16G"
    skip: Annotated[int, typer.Option(min=0, max=MOST, help="Records left out first.")] = 0
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Records kept; then the program is ended.")
    ] = None
    skip_instructions: Annotated[
        int, typer.Option(min=0, max=MOST, help="Instructions before the first record.")
    ] = 0
    limit_instructions: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Instructions kept; then the program is ended."),
    ] = None
    follow_fork: Annotated[
        bool | None,
        typer.Option(
            "--follow-fork/--no-follow-fork",
            help="Record forked children too, in NAME.1.parquet and so on. With --pc "
            "(where it is the default) their stores to mapped files go into the "
            "program's trace, in one order.",
        ),
    ] = None
    read_data: Annotated[
        bool,
        typer.Option(
            "--read-data/--no-read-data",
            help="The first read of a line has its contents, which are what memory held.",
        ),
    ] = True
    pc: Annotated[
        bool,
        typer.Option(
            "--pc",
            help="Record the place in the program of each store, flush and fence; for crash-test.",
        ),
    ] = False
    rest: Annotated[
        int,
        typer.Option(
            min=0,
            max=1_000_000,
            metavar="MICROSECONDS",
            help="With --pc: a thread rests so long after each of its first 16 stores to files at "
            "a place, so that threads overlap; 0: never.",
        ),
    ] = 100
    acks: Annotated[
        bool,
        typer.Option(
            "--acks", help="Record what the program had printed at each moment; for crash-test."
        ),
    ] = False
    acks_fd: Annotated[
        int | None,
        typer.Option(min=0, max=2**20, help="The same for this descriptor instead of 1."),
    ] = None
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="At the end, hold the trace against the program's memory, page by page.",
        ),
    ] = False
    qemu: Annotated[
        Path | None,
        typer.Option(
            help="QEMU's qemu-x86_64, 10.0 or newer, if not the one that comes with Sardonyx.",
            **PATH,
        ),
    ] = None
    json_to: JsonTo = None


@rare(
    "read_data",
    "l1",
    "l2",
    "non_inclusive",
    "cores",
    "reuse",
    "clearing",
    "kernel_instructions",
    "memory",
    "skip_instructions",
    "limit_instructions",
    "rest",
    "acks_fd",
    "qemu",
)
def record(asked: Record) -> None:
    """Run a program and write down what it asks of memory, with the bytes.

    Any x86-64 Linux program, unmodified. A program that it becomes by exec is recorded too, its
    children only with --follow-fork or --pc. The exit status is the program's; if a signal ends
    it, 128 and the signal's number, and the trace is kept. io_uring, AIO, userfaultfd, ptrace and
    process_vm_readv answer ENOSYS.

    [bold]Example[/bold]: sardonyx trace record -o t.parquet -- sqlite3 my.db .dump
    """
    check_json_target(asked.json_to)
    program = asked.program[1:] if asked.program[:1] == ["--"] else asked.program
    target = asked.output or Path(f"{Path(program[0]).name if program else 'trace'}.parquet")
    writable(target, asked.json_to)
    acks = asked.acks_fd if asked.acks_fd is not None else 1 if asked.acks else None
    level = asked.level or ("cpu" if asked.pc or acks is not None else "memory")
    caches: dict[str, Any]
    caches = {"l1": Record.l1, "l2": Record.l2, "llc": Record.llc, "non_inclusive": False}
    if level == "memory":
        caches = {"l1": asked.l1, "l2": asked.l2, "llc": asked.llc}
        caches["non_inclusive"] = asked.non_inclusive
    pages = asked.pages or ("virtual" if level == "cpu" else "sequential")
    memory = asked.memory if pages.startswith("random") else Record.memory
    below = level == "memory"
    reuse = asked.reuse if below and pages == "sequential" else Record.reuse
    clearing = asked.clearing if below else Record.clearing
    kernel = Record.kernel_instructions
    if below and clearing != "none":
        kernel = asked.kernel_instructions
    wanted = RecordRequest(
        **caches,
        program=tuple(program),
        output=str(target),
        plugin=str(PLUGIN),
        qemu=emulator(asked.qemu),
        cores=asked.cores,
        level=level,
        pages=pages,
        reuse=reuse,
        clearing=clearing,
        kernel_instructions=kernel,
        memory=memory,
        skip=asked.skip,
        limit=asked.limit,
        skip_instructions=asked.skip_instructions,
        limit_instructions=asked.limit_instructions,
        follow_fork=asked.pc if asked.follow_fork is None else asked.follow_fork,
        read_data=asked.read_data,
        pc=asked.pc,
        rest=asked.rest if asked.pc else Record.rest,
        acks=acks,
        verify=asked.verify,
    )
    chosen = f"with --level {level} --pages {pages}"
    if clearing != Record.clearing:
        chosen += f" --clearing {clearing}"
    json_to = asked.json_to
    asked.refuse_idle(chosen, {"rest": "without --pc"})
    _record(wanted, json_to)


def emulator(asked: Path | None = None) -> str | None:
    """The emulator that was asked for, or that there is of ours; else one in PATH is taken."""
    if asked is not None:
        return str(asked.absolute() if asked.exists() else asked)
    return next((str(place) for place in EMULATORS if place.is_file()), None)


def _record(wanted: RecordRequest, json_to: str | None) -> None:
    outcome = run_recorded(wanted, err)
    for trace in outcome["traces"]:
        said = {key: trace[key] for key in ("records", "instructions", "complete")}
        facts_of(trace["path"], said, None, err)
        if wanted.verify:
            _say_verified(trace)
        for note in trace["notes"]:
            err.print(f"note: {note}", soft_wrap=True)
    if outcome["signal"] is not None:
        err.print(
            f"note: the program was ended by signal {outcome['signal']}; "
            "the trace is whole up to there"
        )
    elif outcome["status"]:
        err.print(f"note: the program ended with status {outcome['status']}")
    write_json(json_to, outcome)
    if any(trace["verified"] and trace["verified"]["different"] for trace in outcome["traces"]):
        raise _core.SardonyxError(
            "--verify: the trace and the program's memory differ; please report the program"
        )
    if outcome["interrupted"]:
        return
    if outcome["signal"] is not None:
        raise typer.Exit(BY_SIGNAL + outcome["signal"])
    if outcome["status"]:
        raise typer.Exit(outcome["status"])


def _say_verified(trace: dict[str, Any]) -> None:
    found = trace["verified"]
    if found is None:
        err.print("not verified: the program did not end in order, or the trace is cut")
        return
    counted = f"{found['lines']:,} lines of {found['pages']:,} pages"
    if not found["different"]:
        err.print(f"verified: {counted} are in memory as in the trace")
        return
    places = ", ".join(map(str, found["first"]))
    err.print(f"not verified: {found['different']:,} of {counted} differ: {places}", soft_wrap=True)


def run_recorded(wanted: RecordRequest, console: Console) -> dict[str, Any]:
    """Record on another thread and show the counters.

    Ctrl-C, SIGTERM and SIGHUP end the program within a second, the second one at once. The trace is
    kept, and the rings' folder is not. The third one ends us, however long the files of the program
    take to read.
    """
    recording = _core.Recording()
    text = wanted.json()
    interrupted: list[bool] = []
    started = time.monotonic()

    def stop(*_: object) -> None:
        recording.stop()
        interrupted.append(True)
        if len(interrupted) == 2:
            _core.end_patiently(False)

    with ThreadPoolExecutor(1) as pool, _on_signals(stop), ending_patiently():
        done = pool.submit(_core.trace_record, text, recording)

        def wait(show: Callable[[], None]) -> str:
            while True:
                try:
                    return done.result(timeout=LOOK_EVERY)
                except NotYet:
                    show()
                except KeyboardInterrupt:
                    stop()

        if console.is_terminal:
            with Live(console=console, transient=True, auto_refresh=False) as live:
                answer = wait(lambda: live.update(_counters(recording, started), refresh=True))
        else:
            answer = wait(lambda: None)
    outcome: dict[str, Any] = json.loads(answer) | {"interrupted": bool(interrupted)}
    return outcome


@contextmanager
def _on_signals(handler: Callable[..., None]) -> Iterator[None]:
    """Call the handler at SIGTERM or SIGHUP, if they would end us."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    before = {number: old for number, old in before.items() if old in (signal.SIG_DFL, ended)}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _counters(recording: _core.Recording, started: float) -> Text:
    passed = max(time.monotonic() - started, 1e-3)
    rate = recording.instructions / passed
    slowdown = f"about {NATIVE_RATE / rate:.0f}x slower" if rate else "starting"
    return Text(
        f"{recording.instructions / 1e6:,.0f} M instructions · {recording.records:,} records · "
        f"{recording.bytes / 1e6:,.0f} MB · {slowdown}",
        style="dim",
    )
