# ruff: noqa: A002 - parameters have the options' names
"""What the native module is asked, as Rust declares it: written by tools/questions.py.

A type is one JSON document. What may be left out has its default here, as it has there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from sardonyx.runs.scheduler import Watch
from sardonyx.values import Value

#: A word or a path, and several of them: one alone stands for a list of one.
Text: TypeAlias = str | os.PathLike[str]
Texts: TypeAlias = Text | Sequence[Text]
#: Keys and their values, or texts KEY=VALUE.
Pairs: TypeAlias = Mapping[str, str | int | float | bool] | Texts


class AccessesQuestion(Value):
    """A load of threads on a design of a machine with some of its keys set: ``operation`` and
    ``order`` by name, accesses of ``access_bytes`` each, of every thread ``outstanding`` lines
    under way at most. ``bytes`` are touched, at most.
    """

    access_bytes: int
    bytes: int
    design: str
    fenced: bool
    machine: str
    operation: str
    order: str
    outstanding: int
    requests: int
    seed: int
    shuffled: bool
    threads: int
    overrides: tuple[tuple[str, str], ...] = ()


class AttackAsked(Value):
    """One attack of those that a run is attacked with: at cut number ``look`` of ``looks``, of the
    ``each`` of its ``kind`` there that with this ``number``; ``when`` is off, recovering or
    running.
    """

    each: int
    kind: str
    look: int
    looks: int
    number: int
    when: str


class CommandsFile(Value):
    """A file for the commands of a run, as DRAMPower reads them."""

    path: str


class Conversion(Value):
    """A conversion between two formats. ``data`` fills writes without bytes: zero, random or
    unique, made of ``seed``; ``clock_mhz`` is the clock of a trace that counts cycles,
    ``levels`` the sizes of the levels of a ReadWriteTrace's device.
    """

    data: str
    from_format: str
    seed: int
    source: str
    target: str
    to_format: str
    clock_mhz: float | None = None
    levels: tuple[int, ...] | None = None


class CrashFilesQuestion(Value):
    """A program, the folder that it works in, and the command that recovers from an image of that
    folder.
    """

    #: The folder that it works in.
    files: str
    #: The words of the program's command.
    program: tuple[str, ...]
    #: The program's descriptor whose text is in ``{acks}``.
    acks_fd: int = 1
    #: Whether the text of every socket is in ``{acks}``, and not that of a descriptor.
    acks_socket: bool = False
    #: Whether the recorded program may have failed, or been ended early.
    allow_failure: bool = False
    #: Seconds that the search may take, from the first recovery on.
    budget: float = 50.0
    #: Whether syncs and writes are made to fail too, one in a run.
    errors: bool = False
    #: A folder for the images of each cause.
    keep: str | None = None
    #: Bytes of memory for one recovery.
    memory_limit: int = 4_294_967_296
    #: Exit statuses that are no violation.
    ok: tuple[int, ...] = (0,)
    #: ``ordered``, ``writeback`` or ``strict``.
    platform: str = "ordered"
    #: Seconds that the program may run.
    record_limit: float = 50.0
    #: The words of the recovery's command, with ``{dir}`` and ``{acks}``; none if the operations
    #: are only to be listed.
    recover: tuple[str, ...] = ()
    #: The seed that images are drawn from.
    seed: int = 1
    #: The number of workers; 0: one for each processor.
    threads: int = 0
    #: Seconds for one recovery; by default it follows from the undisturbed one.
    time_limit: float | None = None


class ScriptQuestion(Value):
    """What the machine does of its own accord in a run, in place of what the seed draws: three
    numbers each. Evictions: core, number of its operation, line that goes after it. Delays:
    place, number of the write of it, nanoseconds for which it is held back. Pauses: core, number
    of its operation, instructions before it.
    """

    cached_lines: int
    delays: tuple[tuple[int, int, int], ...]
    evictions: tuple[tuple[int, int, int], ...]
    pauses: tuple[tuple[int, int, int], ...]


class TraceSource(Value):
    """A trace file; ``limit`` ends it after so many records, those of a ``window`` that begins
    where this share of the others has gone by: 0.5 is its middle.
    """

    kind: Literal["trace"] = "trace"
    path: str
    limit: int | None = None
    window: float | None = None


class SynthSource(Value):
    """A rung of the locality ladder, of its own number of records or of ``records``. They are alike
    anywhere, so that every window is its beginning.
    """

    kind: Literal["synth"] = "synth"
    name: str
    #: A trace that the generated one is like, in place of a rung.
    like: str | None = None
    limit: int | None = None
    records: int | None = None
    seed: int = 0
    #: Over so many times the lines of that trace, each of which comes back so many times as late.
    times: int = 1
    window: float | None = None


class ProgramSource(Value):
    """A persistent program; sizes are bytes. Without a name: the sizes of programs to be named."""

    kind: Literal["program"] = "program"
    footprint: int = 16_777_216
    item_bytes: int = 64
    name: str = ""
    seed: int = 0
    #: Whether the program keeps an undo log where the hardware keeps none.
    software_log: bool = True
    transactions: int = 10_000


class MixSource(Value):
    """Traces, each on a core of its own."""

    kind: Literal["mix"] = "mix"
    sources: tuple[Source, ...]


#: Where the operations of a run come from.
Source: TypeAlias = TraceSource | SynthSource | ProgramSource | MixSource


class CrashQuestion(Value):
    """One run of a program on each core under a design, its power cut at every position, at
    ``cuts`` of them, or at the one that is ``cut``. ``sharing`` says who shares lines of
    counters. One recovery in ``recovery_cuts`` is cut as well; one cut in ``full_one_in`` is
    looked at in full. ``threads`` of 0 is one a processor. With ``attack`` an attacker changes
    the medium as well; if it is null, where the design has integrity. ``one_attack`` is that
    attack alone.
    """

    design: str
    machine: str
    program: Source
    attack: bool | None = None
    cores: int = 1
    cut: int | None = None
    cuts: int | None = None
    full_one_in: int = 509
    mutant: str | None = None
    one_attack: AttackAsked | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    platform: str = "adr"
    recovery_cuts: int = 64
    script: ScriptQuestion | None = None
    sharing: str = "apart"
    tear: str = "lines"
    threads: int = 0


class CrashTestQuestion(Value):
    """A recording, one of its mapped files, and the command that recovers from an image of it."""

    #: The mapped file, under the path that the recorded program used.
    pool: str
    #: The recording, a trace of level ``cpu``.
    recording: str
    #: The words of the recovery's command.
    recover: tuple[str, ...]
    #: How the program acknowledged operations: ``lines`` (it printed a line when one was done) or
    #: ``none`` (any beginning will do).
    acknowledged: str = "lines"
    #: Whether the recorded program may have failed, or been ended early.
    allow_failure: bool = False
    #: The words of the command that makes a pool of some operations.
    apply: tuple[str, ...] = ()
    #: Lines of code, ``FILE:LINE``, whose stores count as persistent at once.
    assume_persisted: tuple[str, ...] = ()
    #: Seconds that the search may take, from the first recovery on.
    budget: float = 50.0
    #: What counts before the recovery first copes, while the pool is made: ``status`` (it may
    #: refuse the pool by the exit status that the pool gets before the first store), ``orderly``
    #: (by any), or ``skip`` (such cuts are not tried).
    creation: str = "status"
    #: A folder for the images of each cause.
    keep: str | None = None
    #: Bytes of memory for one recovery.
    memory_limit: int = 4_294_967_296
    #: Further mapped files that are cut with it; ``{pool2}`` in the recovery's command is the first
    #: of them.
    more_pools: tuple[str, ...] = ()
    #: Exit statuses that are no violation.
    ok: tuple[int, ...] = (0,)
    #: The operations of the recorded run, one a line: what the recovery prints must be what a
    #: beginning of them leaves.
    operations: str | None = None
    #: ``adr``, ``eadr``, ``pages``, ``sectors``, or ``auto``: ``pages`` if the program flushes no
    #: line and syncs, else ``adr``.
    platform: str = "auto"
    #: The name of the one image to run the recovery on, instead of exploring.
    replay: str | None = None
    #: The seed that images are drawn from.
    seed: int = 1
    #: Whether lines of code are wanted, if the recording has places.
    source: bool = True
    #: A mark, or a row of the recording, from which on cuts are tried.
    start: str | None = None
    #: Whether lines tear at words.
    tear: bool = False
    #: Another order of threads than the recorded one, ``THREAD@ROW``: that thread is held back
    #: after that row, and only what is in another order then is cut.
    thread_order: str | None = None
    #: The number of workers; 0: one for each processor.
    threads: int = 0
    #: Seconds for one recovery; by default it follows from the undisturbed one.
    time_limit: float | None = None


class CurveQuestion(Value):
    """A load on a design of a machine with some of its keys set. Of 1,000 requests
    ``reads_per_mille`` are reads; they come at ``bytes_per_second``, or as fast as they are
    answered if that is null, with ``outstanding`` of them at most. ``streams`` of 0 draws any
    line; else so many streams of lines follow one another. ``bytes`` are touched, at most.
    """

    bytes: int
    design: str
    machine: str
    outstanding: int
    reads_per_mille: int
    requests: int
    seed: int
    streams: int
    bytes_per_second: float | None = None
    overrides: tuple[tuple[str, str], ...] = ()


#: Whose layout a trace has.
Format: TypeAlias = Literal["fiu", "destor"]


class EstimateQuestion(Value):
    """What to read, and how to count it."""

    #: Bytes of fixed blocks, ascending; each a multiple of the first.
    blocks: tuple[int, ...]
    #: The most memory in bytes.
    memory: int
    #: A directory, a file, a device, or ``-`` for standard input.
    path: str
    #: Average bytes of chunks by content.
    content_defined: int | None = None
    #: The file that keeps what has been found so far, and from which the estimate goes on.
    state: str | None = None
    #: The format, if it is a trace of digests.
    trace: Format | None = None


class ExhaustiveQuestion(Value):
    """All orders in which the writes of a run can be accepted, each cut at every position; after
    each cut all orders of the life that follows, unless the run's ``recovery_cuts`` is 0. It
    gives up beyond ``most_states`` states. With ``order``, that order alone: which of the writes
    that can go goes first, choice by choice. A footprint of 0 is the smallest that the program
    has.
    """

    run: CrashQuestion
    most_states: int = 1_000_000
    order: tuple[int, ...] | None = None


class RequestsFile(Value):
    """A file for the requests of a run on ``trace``."""

    path: str
    trace: str


class SampleQuestion(Value):
    """Which part of a run of recordings is timed: so many ``windows``, of so many ``requests`` that
    count and as many as ``ramp`` before them, each somewhere in its part of the run as drawn
    from ``seed``.
    """

    ramp: int
    requests: int
    windows: int
    seed: int = 0


class TimelineFile(Value):
    """A file for the timeline of a run: process ````number```` of a file of several, called
    ````name````. It has so many ````requests```` from number ````first```` on, or from the first
    that counts.
    """

    name: str
    path: str
    requests: int
    first: int | None = None
    number: int = 0


class Job(Value):
    """A design over a source, on ``copies`` cores of a machine with some of its keys set;
    ``warmup`` requests, or transactions of each core, warm the machine up and are left out of
    the statistics.
    """

    design: str
    machine: str
    source: Source
    #: A line for each command of the memory is written.
    commands: CommandsFile | None = None
    copies: int = 1
    #: The share of contents that each copy has for itself; at 1 a generated trace has a seed of its
    #: own in each.
    distinct: float = 0.0
    overrides: tuple[tuple[str, str], ...] = ()
    #: A row for each request is written.
    requests: RequestsFile | None = None
    #: Windows of the run are timed, and the rest changes state without a clock.
    sample: SampleQuestion | None = None
    #: Each thread of a recording has a core of its own in each copy, in one address space.
    threads: bool = False
    #: A timeline of the run is written.
    timeline: TimelineFile | None = None
    #: Each read is held to what was written last to its line.
    verify: bool = True
    warmup: int = 0
    #: The warm-up is this share of the run, beside ``warmup`` requests or transactions.
    warmup_share: float = 0.0


class RecordRequest(Value):
    """The options of ``sardonyx trace record``, as the user writes them."""

    #: How the kernel clears pages: ``whole-lines``, ``fetched`` or ``none``.
    clearing: str
    #: Cores with private caches.
    cores: int
    #: Children are recorded too.
    follow_fork: bool
    #: FAULT:LINE, instructions of the kernel for a page and for each line that it clears.
    kernel_instructions: str
    #: SIZE:WAYS.
    l1: str
    #: SIZE:WAYS.
    l2: str
    #: ``memory`` or ``cpu``.
    level: str
    #: SIZE:WAYS or ``none``.
    llc: str
    #: The size of the memory for random frames, as in ``8G``.
    memory: str
    #: The last level does not include the others.
    non_inclusive: bool
    #: The trace.
    output: str
    #: Flushes, fences and stores to mapped files carry their place in the program.
    pc: bool
    #: The plugin.
    plugin: str
    #: The program and its arguments.
    program: tuple[str, ...]
    #: The first read of a line carries its bytes.
    read_data: bool
    #: Microseconds that a thread rests after each of its first stores to files at a place.
    rest: int
    #: ``last-freed``, ``first-freed`` or ``never``.
    reuse: str
    #: Records to leave out at the beginning.
    skip: int
    #: Instructions to leave out at the beginning.
    skip_instructions: int
    #: The descriptor to which acknowledgements are printed.
    acks: int | None = None
    #: The most records to keep.
    limit: int | None = None
    #: The most instructions to keep.
    limit_instructions: int | None = None
    #: ``virtual``, ``sequential``, ``random[:SEED]`` or ``pagemap``; by default ``sequential``, and
    #: at level ``cpu`` ``virtual``.
    pages: str | None = None
    #: QEMU.
    qemu: str | None = None
    #: The trace is held against the program's memory at its end.
    verify: bool = False


class StoreAsked(Value):
    """A design with those of its keys that are set."""

    #: The design.
    name: str
    #: An empty folder, for a store that is executed.
    folder: str | None = None
    #: The keys that are set, with their values as users write them.
    keys: tuple[tuple[str, str], ...] = ()


class Stream(Value):
    """Generated, as IOzone does with its share of duplicates: logical blocks in order, each once
    unless they are fewer than what is written. Shares are met exactly.
    """

    #: Bytes written.
    bytes: int
    kind: Literal["stream"] = "stream"
    #: Share of writes whose content was written before.
    duplicates: float = 0.3
    #: Whether each write is encrypted under a pad of its own before it comes.
    encrypted: bool = False
    #: Share of operations that read a block written before.
    reads: float = 0.0
    #: The seed that chooses the duplicates and the reads.
    seed: int = 0
    #: Bytes of logical blocks that are written, again and again; 0 for as many as ``bytes``.
    span: int = 0


class Tree(Value):
    """The files below a directory, or one file."""

    kind: Literal["tree"] = "tree"
    #: The directory or file.
    path: str


class BlockTrace(Value):
    """A recorded block trace: FIU's with digests, MSR's or fio's without."""

    kind: Literal["trace"] = "trace"
    #: The file.
    path: str
    #: Of a trace without contents: the share of writes whose content was written before.
    duplicates: float | None = None
    #: The seed that chooses the duplicates.
    seed: int = 0


#: Where blocks come from.
Workload: TypeAlias = Stream | Tree | BlockTrace


class StoreQuestion(Value):
    """A design and a workload, with blocks of this size."""

    #: The store.
    design: StoreAsked
    #: The operations on it.
    workload: Workload
    #: Bytes of a block.
    block_bytes: int = 4_096


class TimedQuestion(Value):
    """One application under one design."""

    application: str
    #: What merges.
    design: str
    #: Images of the virtual machines, in turn; without any they are generated.
    images: tuple[str, ...] = ()
    machine: str = "pageforge"
    #: The design of the memory under the applications: its name, or
    #: ``LOGGING/MAPPING+POLICY@INTEGRITY``.
    memory: str = "no-encryption"
    seed: int = 0
    #: Keys and values, of the machine and of the merge.
    sets: tuple[tuple[str, str], ...] = ()


class TrialQuestion(Value):
    """A design under a program, tried by the explorer's plan of passes. Sizes that are null are
    each pass's own. Without ``software_log`` the program keeps no undo log, even where the
    hardware keeps none. With ``thorough_seconds`` the plan goes on with further seeds for so
    long. With ``attack`` an attacker changes the medium as well; if it is null, where the design
    has integrity.
    """

    design: str
    machine: str
    program: str
    attack: bool | None = None
    cores: int | None = None
    cuts: int | None = None
    footprint: int | None = None
    full_one_in: int = 509
    item_bytes: int | None = None
    mutant: str | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    platform: str = "adr"
    recovery_cuts: int = 64
    seed: int = 1
    software_log: bool = True
    tear: str = "lines"
    thorough_seconds: float | None = None
    threads: int = 0
    transactions: int | None = None


class CheckHost(Value):
    """What ``check-host`` is asked."""

    log: str
    bound: float
    clocks: float
    path_ns: float


def check_host(
    log: str,
    *,
    bound: float = 5.0,
    clocks: float = 0.1,
    path_ns: float = 0.0,
    watch: Watch | None = None,
) -> None:
    """Compare what controller, port and application measured; fail where they disagree.

    ``log``: The log that the library wrote for the key host.log.
    ``bound``: Largest difference of bandwidth and latency at a load, percent. 0 to 100.
    ``clocks``: Largest difference of the clocks, percent. 0 to 100.
    ``path_ns``: The host's own path to the controller and back, in ns; subtracted from its
    latencies. 0 to 1,000,000,000.0.
    """


class Compare(Value):
    """What ``compare`` is asked."""

    traces: tuple[str, ...]
    designs: tuple[str, ...]
    machine: str
    set: tuple[tuple[str, str], ...]
    limit: int | None
    addresses: str | None
    arrivals: str | None
    warmup: str | None
    sample: str | None
    copies: int
    distinct: bool
    threads: bool
    no_verify: bool
    transactions: int
    transaction_size: int
    footprint: int
    seed: int
    seeds: int | None
    sensitivity: bool
    draws: int | None
    timeline: Path | None
    timeline_window: str | None
    requests: Path | None
    commands: Path | None
    jobs: int | None


def compare(
    traces: Texts = (),
    *,
    designs: Texts = ("baseline", "dedup-sha1", "dewrite", "esd"),
    machine: str = "esd",
    set: Pairs = (),
    limit: int | None = None,
    addresses: str | None = None,
    arrivals: str | None = None,
    warmup: str | None = None,
    sample: str | None = None,
    copies: int = 1,
    distinct: bool = False,
    threads: bool = False,
    no_verify: bool = False,
    transactions: int = 10_000,
    transaction_size: int | str = 64,
    footprint: int | str = 16_777_216,
    seed: int = 0,
    seeds: int | None = None,
    sensitivity: bool = False,
    draws: int | None = None,
    timeline: Text | None = None,
    timeline_window: str | None = None,
    requests: Text | None = None,
    commands: Text | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Run designs on traces: a table, results.json, results.parquet and report.html.

    ``traces``: Trace files, recordings (``sardonyx recordings``), programs (``sardonyx
    programs``), or synth:NAME[:RECORDS[:SEED]].
    ``designs``: Designs, separated by commas.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``limit``: Use only the first N records of each trace.
    ``addresses``: Where a trace's addresses lie: as-traced, first-touch, scattered or wrapped;
    default: as-traced if they are physical, else first-touch. In sweeps: the key addresses.
    ``arrivals``: Whether a trace's cycles are stamps at which requests arrive (open), or gaps of
    a core that waits (closed); default: as the trace says. In sweeps: the key arrivals.
    ``warmup``: Warm up with N requests (programs: transactions) or N % of the run, excluded from
    the statistics.
    ``sample``: Simulate only some windows of each trace in time, as in 50x10000, and give
    figures with their 95 % intervals.
    ``copies``: Cores that run the trace or program, each in its own address space. 1 to 1,024.
    ``distinct``: Give each copy contents of its own.
    ``threads``: Play each thread of a recording on a core of its own, in one address space.
    ``no_verify``: Do not hold reads to what was written.
    ``transactions``: Transactions of each core's program.
    ``transaction_size``: Size of a program's items: 64 to 4K.
    ``footprint``: Size of each program's structure, as in 100M.
    ``seed``: Seed of programs' keys and choices, and of where windows lie.
    ``seeds``: Run programs and synth: traces with N seeds; figures are means with their 95 %
    intervals. 2 to 1,000.
    ``sensitivity``: Also run each assumed key at the ends of its range and all of them together,
    and say which conclusions flip.
    ``draws``: With --sensitivity: draws of all assumed keys together; default: 30. 0 to 10,000.
    ``timeline``: Draw requests over banks and units, for Perfetto.
    ``timeline_window``: The requests that are drawn, as in 1000..2000; default: the first 2,000
    that count.
    ``requests``: Write each request's times and causes, as Parquet.
    ``commands``: Write the memory's commands, one run's, as DRAMPower reads them.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class CrashExhaustive(Value):
    """What ``crash exhaustive`` is asked."""

    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: str
    cores: int | None
    transactions: int | None
    mutant: str | None
    machine: str
    set: tuple[tuple[str, str], ...]
    sharing: str | None
    most_states: int
    order: str | None
    one_life: bool
    transaction_size: int | None
    footprint: int | None
    seed: int
    no_log: bool


def crash_exhaustive(
    programs: Texts = (),
    *,
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    platform: str = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    mutant: str | None = None,
    machine: str = "sca",
    set: Pairs = (),
    sharing: str | None = None,
    most_states: int = 1_000_000,
    order: str | None = None,
    one_life: bool = False,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    seed: int = 1,
    no_log: bool = False,
    watch: Watch | None = None,
) -> None:
    """Try all orders in which the writes of one small run can be accepted, and all their cuts.

    ``programs``: Programs (see sardonyx programs), or all of them: all.
    ``designs``: Designs, or MAPPING+POLICY, separated by commas.
    ``platform``: What reserve power drains at a cut: adr, eadr or none; or a CXL global
    persistent flush: gpf, gpf-failed, gpf-device or gpf-part.
    ``cores``: Cores, each with a structure of its own. 1 to 64.
    ``transactions``: Transactions of each core. 1 to 1,000,000.
    ``mutant``: Plant this mistake in the program's transactions.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``sharing``: Lines of counters: apart, packed (log and data share), interleaved (cores too).
    Default: both ends.
    ``most_states``: Give up beyond N states.
    ``order``: Only the order in which these writes go first, one number for each choice; after
    them always the first write. start: no numbers.
    ``one_life``: Leave out the life after each cut.
    ``transaction_size``: Size of a transaction's item: 64 to 4K.
    ``footprint``: Size of each structure after setup: 4K to 1G.
    ``seed``: Seed of keys, evictions, delays and samples. 0 to 1,125,899,906,842,624.
    ``no_log``: The program keeps no undo log; the design's own stays.
    """


class CrashOnce(Value):
    """What ``crash once`` is asked."""

    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: str
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    machine: str
    set: tuple[tuple[str, str], ...]
    attack: bool | None
    cuts: int | str
    sharing: str
    beside: Path | None
    seed: int
    no_log: bool
    tear: str
    recovery_cuts: int
    full: int
    out: Path | None
    jobs: int


def crash_once(
    programs: Texts = (),
    *,
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    platform: str = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    machine: str = "sca",
    set: Pairs = (),
    attack: bool | None = None,
    cuts: int | str = "all",
    sharing: str = "apart",
    beside: Text | None = None,
    seed: int = 1,
    no_log: bool = False,
    tear: str = "lines",
    recovery_cuts: int = 64,
    full: int = 509,
    out: Text | None = None,
    jobs: int = 0,
    watch: Watch | None = None,
) -> None:
    """Make one run of each design, with the settings given, and cut it.

    ``programs``: Programs (see sardonyx programs), or all of them: all.
    ``designs``: Designs, or MAPPING+POLICY, separated by commas.
    ``platform``: What reserve power drains at a cut: adr, eadr or none; or a CXL global
    persistent flush: gpf, gpf-failed, gpf-device or gpf-part.
    ``cores``: Cores, each with a structure of its own. 1 to 64.
    ``transactions``: Transactions of each core. 1 to 1,000,000.
    ``transaction_size``: Size of a transaction's item: 64 to 4K.
    ``footprint``: Size of each structure after setup: 4K to 1G.
    ``mutant``: Plant this mistake in the program's transactions.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``attack``: Have an attacker change the medium, after cuts and in runs; default: for designs
    with integrity.
    ``cuts``: Which cuts: all, a number of positions drawn from the seed, or at:N for one.
    ``sharing``: Lines of counters: apart, packed (log and data share), interleaved (cores too).
    ``beside``: The file of the document, beside which replay files lie.
    ``seed``: Seed of keys, evictions, delays and samples. 0 to 1,125,899,906,842,624.
    ``no_log``: The program keeps no undo log; the design's own stays.
    ``tear``: What a cut leaves whole while a line is being accepted: the line (lines) or each 8
    bytes (words).
    ``recovery_cuts``: After every Nth cut, go on and cut again; 0: never.
    ``full``: Check every Nth cut in full, the others by what it changed; 1: every cut.
    ``out``: Directory of replay files; default: that of --json, else results/crash.
    ``jobs``: Threads; 0 for one a processor. 0 to 1,024.
    """


class CrashReplay(Value):
    """What ``crash replay`` is asked."""

    file: Path
    jobs: int


def crash_replay(
    file: Text,
    *,
    jobs: int = 0,
    watch: Watch | None = None,
) -> None:
    """Make the cut of a replay file again.

    ``file``: A replay file that a violation printed.
    ``jobs``: Threads; 0 for one a processor. 0 to 1,024.
    """


class CrashRun(Value):
    """What ``crash run`` is asked."""

    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: str
    cores: int | None
    mutant: str | None
    machine: str
    set: tuple[tuple[str, str], ...]
    attack: bool | None
    thorough: float | None
    beside: Path | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    seed: int
    no_log: bool
    tear: str
    recovery_cuts: int
    full: int
    out: Path | None
    jobs: int
    cuts: int | str


def crash_run(
    programs: Texts = (),
    *,
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    platform: str = "adr",
    cores: int | None = None,
    mutant: str | None = None,
    machine: str = "sca",
    set: Pairs = (),
    attack: bool | None = None,
    thorough: float | str | None = None,
    beside: Text | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    seed: int = 1,
    no_log: bool = False,
    tear: str = "lines",
    recovery_cuts: int = 64,
    full: int = 509,
    out: Text | None = None,
    jobs: int = 0,
    cuts: int | str = "all",
    watch: Watch | None = None,
) -> None:
    """Try each design by a plan of runs, all cut at every position.

    ``programs``: Programs (see sardonyx programs), or all of them: all.
    ``designs``: Designs, or MAPPING+POLICY, separated by commas.
    ``platform``: What reserve power drains at a cut: adr, eadr or none; or a CXL global
    persistent flush: gpf, gpf-failed, gpf-device or gpf-part.
    ``cores``: Cores, each with a structure of its own. 1 to 64.
    ``mutant``: Plant this mistake in the program's transactions.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``attack``: Have an attacker change the medium, after cuts and in runs; default: for designs
    with integrity.
    ``thorough``: Go on with further seeds for this time per design: 90s, 10m or 2h.
    ``beside``: The file of the document, beside which replay files lie.
    ``transactions``: Transactions of each core. 1 to 1,000,000.
    ``transaction_size``: Size of a transaction's item: 64 to 4K.
    ``footprint``: Size of each structure after setup: 4K to 1G.
    ``seed``: Seed of keys, evictions, delays and samples. 0 to 1,125,899,906,842,624.
    ``no_log``: The program keeps no undo log; the design's own stays.
    ``tear``: What a cut leaves whole while a line is being accepted: the line (lines) or each 8
    bytes (words).
    ``recovery_cuts``: After every Nth cut, go on and cut again; 0: never.
    ``full``: Check every Nth cut in full, the others by what it changed; 1: every cut.
    ``out``: Directory of replay files; default: that of --json, else results/crash.
    ``jobs``: Threads; 0 for one a processor. 0 to 1,024.
    ``cuts``: How many cuts of a run: all, or a number of positions drawn from the seed.
    """


class CrashStages(Value):
    """What ``crash stages`` is asked."""

    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: str
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    seed: int
    machine: str
    set: tuple[tuple[str, str], ...]
    sharing: str


def crash_stages(
    programs: Texts = (),
    *,
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    platform: str = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    seed: int = 1,
    machine: str = "sca",
    set: Pairs = (),
    sharing: str = "apart",
    watch: Watch | None = None,
) -> None:
    """Count one run's cuts by the stage of the transaction (SCA, Table 1).

    ``programs``: Programs (see sardonyx programs), or all of them: all.
    ``designs``: Designs, or MAPPING+POLICY, separated by commas.
    ``platform``: What reserve power drains at a cut: adr, eadr or none; or a CXL global
    persistent flush: gpf, gpf-failed, gpf-device or gpf-part.
    ``cores``: Cores, each with a structure of its own. 1 to 64.
    ``transactions``: Transactions of each core. 1 to 1,000,000.
    ``transaction_size``: Size of a transaction's item: 64 to 4K.
    ``footprint``: Size of each structure after setup: 4K to 1G.
    ``mutant``: Plant this mistake in the program's transactions.
    ``seed``: Seed of keys, evictions, delays and samples. 0 to 1,125,899,906,842,624.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``sharing``: Lines of counters: apart, packed (log and data share), interleaved (cores too).
    """


class CrashTestFiles(Value):
    """What ``crash-test files`` is asked."""

    program: tuple[str, ...]
    files: Path
    recover: str | None
    list: bool
    platform: str
    budget: float
    errors: bool
    acks_fd: int
    acks_socket: bool
    record_limit: float
    ok: tuple[int, ...]
    time_limit: float | None
    memory_limit: int
    keep: Path | None
    baseline: Path | None
    write_baseline: Path | None
    sarif: Path | None
    junit: Path | None
    allow_failure: bool
    seed: int
    jobs: int


def crash_test_files(
    program: Texts,
    *,
    files: Text,
    recover: str | None = None,
    list: bool = False,
    platform: str = "ordered",
    budget: float | str = 50.0,
    errors: bool = False,
    acks_fd: int = 1,
    acks_socket: bool = False,
    record_limit: float | str = 50.0,
    ok: str | int | Sequence[int] = (0,),
    time_limit: float | str | None = None,
    memory_limit: int | str = 4_294_967_296,
    keep: Text | None = None,
    baseline: Text | None = None,
    write_baseline: Text | None = None,
    sarif: Text | None = None,
    junit: Text | None = None,
    allow_failure: bool = False,
    seed: int = 1,
    jobs: int = 0,
    watch: Watch | None = None,
) -> None:
    """Run a program that writes files, and its own recovery on what each cut could leave.

    ``program``: What to run, after --.
    ``files``: The folder that the program works in; it is changed.
    ``recover``: The program's recovery and check, with {dir} for the folder and {acks} for what
    had been printed.
    ``list``: Only list the operations, with their places.
    ``platform``: What a cut may leave: ordered (ext4), writeback (ext4 with that mode), or
    strict (what POSIX promises, and no more).
    ``budget``: Total time, from the first recovery on.
    ``errors``: Run the program again with a sync (EIO) or a write (ENOSPC) failing, one a run.
    ``acks_fd``: The program's descriptor whose text is in {acks}. 0 to 1,048,576.
    ``acks_socket``: What it sends to any socket is in {acks} instead.
    ``record_limit``: Time after which the program is ended.
    ``ok``: Exit statuses that are no violation.
    ``time_limit``: Time limit of one recovery; default: 50 times as long as it takes without a
    cut, and at least 2 s.
    ``memory_limit``: Memory limit of one recovery.
    ``keep``: Leave here what each cause's recovery was given, as it fails and as it passes.
    ``baseline``: Causes that are accepted, from --write-baseline.
    ``write_baseline``: Write the causes found here, as accepted from now on.
    ``sarif``: Write the causes for code scanning, as SARIF 2.1.0.
    ``junit``: Write the causes as failed tests, as JUnit's XML.
    ``allow_failure``: The recorded program may have failed, or been ended early.
    ``seed``: Seed of the images that are drawn. 0 to 1,125,899,906,842,624.
    ``jobs``: Threads; 0 for one a processor. 0 to 1,024.
    """


class CrashTestLint(Value):
    """What ``crash-test lint`` is asked."""

    recording: Path
    pool: tuple[Path, ...]
    all: bool
    machine: str
    no_source: bool


def crash_test_lint(
    recording: Text,
    *,
    pool: Text | Sequence[Text],
    all: bool = False,
    machine: str = "sca",
    no_source: bool = False,
    watch: Watch | None = None,
) -> None:
    """Without any run, list what is never flushed or flushed for nothing.

    ``recording``: A recording of sardonyx trace record --pc.
    ``pool``: The mapped file to cut, or a folder of such files; repeatable.
    ``all``: Also what a library did to set the pool up.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``no_source``: Report without lines of code.
    """


class CrashTestReplay(Value):
    """What ``crash-test replay`` is asked."""

    recording: Path
    image: str
    pool: tuple[Path, ...]
    recover: str
    platform: str
    operations: Path | None
    apply: str | None
    acknowledged: str
    assume_persisted: tuple[str, ...]
    thread_order: str | None
    ok: tuple[int, ...]
    keep: Path | None
    no_source: bool
    time_limit: float | None
    memory_limit: int


def crash_test_replay(
    recording: Text,
    image: str,
    *,
    pool: Text | Sequence[Text],
    recover: str,
    platform: str = "auto",
    operations: Text | None = None,
    apply: str | None = None,
    acknowledged: str = "lines",
    assume_persisted: Texts = (),
    thread_order: str | None = None,
    ok: str | int | Sequence[int] = (0,),
    keep: Text | None = None,
    no_source: bool = False,
    time_limit: float | str | None = None,
    memory_limit: int | str = 4_294_967_296,
    watch: Watch | None = None,
) -> None:
    """Run the recovery on one image only.

    ``recording``: A recording of sardonyx trace record --pc.
    ``image``: The image, as a report names it: 2+1v1.
    ``pool``: The mapped file to cut, or a folder of such files; repeatable.
    ``recover``: The program's recovery and check, with {pool} for the file ({pool2} for the
    second, {pools} for the folder of all) and {acks} for what had been printed.
    ``platform``: What survives a cut: persistent memory (adr; eadr with the caches), or a file
    on a disk, by pages or by sectors; auto: pages if it only syncs (msync, fsync), else adr.
    ``operations``: The operations of the recorded run, one a line: what --recover prints must be
    what the program leaves of a beginning of them.
    ``apply``: Makes a pool, {pool}, of the operations in a file, {operations}.
    ``acknowledged``: How operations were promised: by a printed line each (lines), or not
    (none).
    ``assume_persisted``: Count the stores of this line as persistent at once; repeatable.
    ``thread_order``: Cut only this order of the threads, as a report names it.
    ``ok``: Exit statuses that are no violation.
    ``keep``: Leave here what each cause's recovery was given, as it fails and as it passes.
    ``no_source``: Report without lines of code.
    ``time_limit``: Time limit of one recovery; default: 50 times as long as it takes without a
    cut, and at least 2 s.
    ``memory_limit``: Memory limit of one recovery.
    """


class CrashTestSearch(Value):
    """What ``crash-test search`` is asked."""

    recording: Path
    pool: tuple[Path, ...]
    recover: str
    platform: str
    budget: float
    html: Path | None
    operations: Path | None
    apply: str | None
    threads: bool
    recovery: bool
    designs: tuple[str, ...] | None
    acknowledged: str
    orders: int
    depth: int
    machine: str
    tear: str
    start: str | None
    creation: str
    assume_persisted: tuple[str, ...]
    no_source: bool
    thread_order: str | None
    ok: tuple[int, ...]
    time_limit: float | None
    memory_limit: int
    keep: Path | None
    baseline: Path | None
    write_baseline: Path | None
    sarif: Path | None
    junit: Path | None
    allow_failure: bool
    seed: int
    jobs: int


def crash_test_search(
    recording: Text,
    *,
    pool: Text | Sequence[Text],
    recover: str,
    platform: str = "auto",
    budget: float | str = 50.0,
    html: Text | None = None,
    operations: Text | None = None,
    apply: str | None = None,
    threads: bool = False,
    recovery: bool = False,
    designs: Texts | None = None,
    acknowledged: str = "lines",
    orders: int = 8,
    depth: int = 1,
    machine: str = "sca",
    tear: str = "lines",
    start: str | None = None,
    creation: str = "status",
    assume_persisted: Texts = (),
    no_source: bool = False,
    thread_order: str | None = None,
    ok: str | int | Sequence[int] = (0,),
    time_limit: float | str | None = None,
    memory_limit: int | str = 4_294_967_296,
    keep: Text | None = None,
    baseline: Text | None = None,
    write_baseline: Text | None = None,
    sarif: Text | None = None,
    junit: Text | None = None,
    allow_failure: bool = False,
    seed: int = 1,
    jobs: int = 0,
    watch: Watch | None = None,
) -> None:
    """Cut a recorded program at every fence, and run its own recovery on what could be left.

    ``recording``: A recording of sardonyx trace record --pc.
    ``pool``: The mapped file to cut, or a folder of such files; repeatable.
    ``recover``: The program's recovery and check, with {pool} for the file ({pool2} for the
    second, {pools} for the folder of all) and {acks} for what had been printed.
    ``platform``: What survives a cut: persistent memory (adr; eadr with the caches), or a file
    on a disk, by pages or by sectors; auto: pages if it only syncs (msync, fsync), else adr.
    With --designs: adr or eadr.
    ``budget``: Total time, from the first recovery on.
    ``html``: Write a page with a timeline of each cause.
    ``operations``: The operations of the recorded run, one a line: what --recover prints must be
    what the program leaves of a beginning of them.
    ``apply``: Makes a pool, {pool}, of the operations in a file, {operations}.
    ``threads``: Then cut other orders of the threads too, which the program could have taken;
    they have the same budget again.
    ``recovery``: Then cut the recovery too, at its own fences; each depth has the budget again.
    ``designs``: Say too what a cut leaves of the pool below each of these designs, separated by
    commas.
    ``acknowledged``: How operations were promised: by a printed line each (lines), or not
    (none).
    ``orders``: Cut up to N other orders. 1 to 1,000.
    ``depth``: Cut the recovery's own recovery too, N deep. 1 to 100.
    ``machine``: The designs' machine: its name, or the path of its file: TOML, DRAMsim3's .ini,
    NVMain's .config, Ramulator's .yaml.
    ``tear``: What a cut leaves whole while a line is being accepted: the line (lines) or each 8
    bytes (words).
    ``start``: First cut; by default where the recovery first copes with what was fenced.
    ``creation``: While the pool is made the recovery may refuse it: by the exit status that the
    untouched pool gets (status), by any (orderly); or such cuts are not tried (skip).
    ``assume_persisted``: Count the stores of this line as persistent at once; repeatable.
    ``no_source``: Report without lines of code.
    ``thread_order``: Cut only this order of the threads, as a report names it.
    ``ok``: Exit statuses that are no violation.
    ``time_limit``: Time limit of one recovery; default: 50 times as long as it takes without a
    cut, and at least 2 s.
    ``memory_limit``: Memory limit of one recovery.
    ``keep``: Leave here what each cause's recovery was given, as it fails and as it passes.
    ``baseline``: Causes that are accepted, from --write-baseline.
    ``write_baseline``: Write the causes found here, as accepted from now on.
    ``sarif``: Write the causes for code scanning, as SARIF 2.1.0.
    ``junit``: Write the causes as failed tests, as JUnit's XML.
    ``allow_failure``: The recorded program may have failed, or been ended early.
    ``seed``: Seed of the images that are drawn. 0 to 1,125,899,906,842,624.
    ``jobs``: Threads; 0 for one a processor. 0 to 1,024.
    """


class Curve(Value):
    """What ``curve`` is asked."""

    machine: str
    designs: tuple[str, ...]
    reads: str | None
    outstanding: int
    streams: int
    bytes: int
    requests: int
    seed: int
    measured: str | None
    in_order: bool
    set: tuple[tuple[str, str], ...]
    plot: Path | None
    jobs: int | None


def curve(
    *,
    machine: str = "cxl",
    designs: Texts = ("no-encryption",),
    reads: str | None = None,
    outstanding: int = 256,
    streams: int = 16,
    bytes: int | str = 1_073_741_824,
    requests: int = 60_000,
    seed: int = 1,
    measured: str | None = None,
    in_order: bool = False,
    set: Pairs = (),
    plot: Text | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Draw a memory's latency against its bandwidth, beside published measurements.

    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``designs``: Designs, separated by commas.
    ``reads``: Shares of reads, a curve each. Default: those measured, or 100,67,50.
    ``outstanding``: The most requests in flight. 1 to 65,536.
    ``streams``: Streams of lines that follow one another, half of reads and half of writes; 0
    draws any line. 0 to 65,536.
    ``bytes``: The most bytes that are touched.
    ``requests``: Requests a point, after half as many uncounted.
    ``seed``: Seed of addresses and contents.
    ``measured``: Measured points as CSV: reads_percent,gb_per_s,read_ns, with the end of each
    curve last; or loads of threads (docs/simulator/medium.md). Default: the package's points for
    the machine of that name.
    ``in_order``: Loads of threads: lines reach the memory in the order in which a thread asks
    for them, threads in turn. Default: in any order.
    ``set``: Set a key of the machine; repeatable.
    ``plot``: Write the curves as an HTML page to this file.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class Designs(Value):
    """What ``designs`` is asked."""


def designs(
    *,
    watch: Watch | None = None,
) -> None:
    """List the designs, each with a line and its source, and what may stand behind each."""


class Diff(Value):
    """What ``diff`` is asked."""

    before: Path
    after: Path
    most: int
    exit_code: bool


def diff(
    before: Text,
    after: Text,
    *,
    most: int = 20,
    exit_code: bool = False,
    watch: Watch | None = None,
) -> None:
    """Compare two results: settings that differ, then figures, the largest change first.

    ``before``: A directory that compare, reproduce or sweep wrote, or a results.json.
    ``after``: A directory that compare, reproduce or sweep wrote, or a results.json.
    ``most``: Figures shown; all are in --json. 1 to 1,000,000.
    ``exit_code``: Status 1 if any figure differs, for scripts.
    """


class Doctor(Value):
    """What ``doctor`` is asked."""


def doctor(
    *,
    watch: Watch | None = None,
) -> None:
    """Try what needs more than Sardonyx itself, and say what is missing and for what."""


class Explore(Value):
    """What ``explore`` is asked."""

    traces: tuple[str, ...]
    sram: int
    designs: tuple[str, ...]
    goal: tuple[str, ...]
    at_most: tuple[str, ...]
    survives: str | None
    machine: str
    set: tuple[tuple[str, str], ...]
    limit: int | None
    transactions: int
    transaction_size: int
    footprint: int
    jobs: int | None


def explore(
    traces: Texts = (),
    *,
    sram: int | str = 1_048_576,
    designs: Texts = ("sca", "baseline", "dedup-sha1", "dewrite", "esd"),
    goal: Texts = (),
    at_most: Texts = (),
    survives: str | None = None,
    machine: str = "esd",
    set: Pairs = (),
    limit: int | None = None,
    transactions: int = 10_000,
    transaction_size: int | str = 64,
    footprint: int | str = 16_777_216,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Say what to build: the best designs and sizes of their tables under a budget of memory.

    ``traces``: Trace files, recordings, synth:NAME or programs, as compare takes them.
    ``sram``: Memory on chip for caches and tables: 512K, 1M.
    ``designs``: Designs, separated by commas.
    ``goal``: What to look for, as in "max ipc"; one or more. Default: ipc, energy.
    ``at_most``: Leave out what has more than so much of a figure; repeatable.
    ``survives``: Only designs that promise at least this after a power cut: 'every line' or
    'after program recovery'.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``limit``: Use only the first N records of each trace.
    ``transactions``: Transactions of each core's program.
    ``transaction_size``: Size of a program's items: 64 to 4K.
    ``footprint``: Size of each program's structure, as in 100M.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class Machines(Value):
    """What ``machines`` is asked."""


def machines(
    *,
    watch: Watch | None = None,
) -> None:
    """List the machines that come with the program, each with its source."""


class Merge(Value):
    """What ``merge`` is asked."""

    machines: tuple[str, ...]
    pid: tuple[int, ...]
    mapping: tuple[str, ...]
    snapshots: int
    every: float
    designs: tuple[str, ...]
    kernel: str
    memory: int
    zeros: Literal["held", "no-holes", "none"]
    pass_in: int
    at_most: int
    passes: int | None
    set: tuple[tuple[str, str], ...]
    owner: tuple[str, ...]
    advice: bool
    what_if: bool
    why: bool


def merge(
    machines: Texts = (),
    *,
    pid: int | Sequence[int] = (),
    mapping: Texts = (),
    snapshots: int = 2,
    every: float = 1.0,
    designs: Texts = ("ksm",),
    kernel: str = "linux-6",
    memory: int | str = 1_073_741_824,
    zeros: Literal["held", "no-holes", "none"] = "no-holes",
    pass_in: int = 200,
    at_most: int = 70,
    passes: int | None = None,
    set: Pairs = (),
    owner: Texts = (),
    advice: bool = True,
    what_if: bool = True,
    why: bool = True,
    watch: Watch | None = None,
) -> None:
    """Say what same-page merging saves on page images, pass by pass, and why not more.

    ``machines``: Images (raw dumps, ELF cores), or folders of snapshots: the k-th is what pass k
    sees, the last one stays.
    ``pid``: A live process; repeatable.
    ``mapping``: Live processes: only mappings whose name contains this; repeatable.
    ``snapshots``: Live processes: the number of snapshots. 1 to 1,000.
    ``every``: Seconds between two snapshots. 0 to 86,400.
    ``designs``: none, ksm, pageforge, separated by commas.
    ``kernel``: The kernel whose KSM is modelled: linux-6, linux-4.4 or paper; host: linux-6 with
    the settings of the running kernel.
    ``memory``: Live processes: memory for copies of their pages. Beyond it pages are known by
    digests, and near matches are not looked for.
    ``zeros``: Images: whether pages of zeros, which may never have been touched, count as pages.
    held: yes; no-holes: except holes of the file; none: no.
    ``pass_in``: Recommend settings for a pass within N seconds. 1 to 1,000,000.
    ``at_most``: Recommend settings for at most N % of a core; goes before --pass-in. 1 to 100.
    ``passes``: Number of passes; default: until the savings stay the same for ten. 1 to
    1,000,000.
    ``set``: Set a key of the merge; repeatable.
    ``owner``: Machines of one owner, who may merge with each other only; repeatable.
    ``advice``: Recommend settings.
    ``what_if``: Try each knob at another value.
    ``why``: Say why pages did not merge.
    """


class MergeGenerate(Value):
    """What ``merge generate`` is asked."""

    mix: str
    target: Path
    pages: int
    passes: int


def merge_generate(
    mix: str,
    target: Text,
    *,
    pages: int = 4_096,
    passes: int = 1,
    watch: Watch | None = None,
) -> None:
    """Make a folder of snapshots of a generated machine.

    ``mix``: What the pages hold: paper, volatile, cow, ..
    ``target``: The folder of snapshots to make.
    ``pages``: Pages. 8 to 2,147,483,647.
    ``passes``: Snapshots. 1 to 10,000.
    """


class MergeTime(Value):
    """What ``merge time`` is asked."""

    applications: tuple[str, ...]
    designs: tuple[str, ...]
    memory: str
    machine: str
    set: tuple[tuple[str, str], ...]
    quick: bool
    seed: int
    jobs: int | None


def merge_time(
    applications: Texts = (),
    *,
    designs: Texts = ("none", "ksm", "pageforge"),
    memory: str = "no-encryption",
    machine: str = "pageforge",
    set: Pairs = (),
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Say what same-page merging costs applications, on a memory of each design.

    ``applications``: Of img_dnn, masstree, moses, silo, sphinx; default: all of them.
    ``designs``: What merges: none,ksm,pageforge, separated by commas.
    ``memory``: The designs of the memory under the applications, separated by commas: names, or
    LOGGING/MAPPING+POLICY as in esd+sca.
    ``machine``: A machine's name, or the path of its file: TOML, DRAMsim3's .ini, NVMain's
    .config, Ramulator's .yaml.
    ``set``: Set a key of the machine; repeatable.
    ``quick``: A window of 40 ms in place of 400, smaller machines.
    ``seed``: Seed of machines and queries.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class Programs(Value):
    """What ``programs`` is asked."""


def programs(
    *,
    watch: Watch | None = None,
) -> None:
    """List the persistent programs that compare takes, each with a line."""


class Recordings(Value):
    """What ``recordings`` is asked."""


def recordings(
    *,
    watch: Watch | None = None,
) -> None:
    """List the recordings that come with the program."""


class Report(Value):
    """What ``report`` is asked."""

    directory: Path
    goal: tuple[str, ...]


def report(
    directory: Text,
    *,
    goal: Texts = (),
    watch: Watch | None = None,
) -> None:
    """Print the table of saved results again and rewrite their report.html.

    ``directory``: A directory that compare, reproduce or sweep wrote.
    ``goal``: For a sweep: a figure, as in "max ipc"; two draw a front; repeatable.
    """


class Reproduce(Value):
    """What ``reproduce`` is asked."""

    paper: str
    traces: tuple[str, ...]
    quick: bool
    machine: str | None
    set: tuple[tuple[str, str], ...]
    limit: int | None
    warmup: str | None
    copies: int | None
    seed: int
    cells: int | None
    population: bool
    sensitivity: bool
    draws: int | None
    jobs: int | None


def reproduce(
    paper: str,
    traces: Texts = (),
    *,
    quick: bool = False,
    machine: str | None = None,
    set: Pairs = (),
    limit: int | None = None,
    warmup: str | None = None,
    copies: int | None = None,
    seed: int = 0,
    cells: int | None = None,
    population: bool = False,
    sensitivity: bool = False,
    draws: int | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Print every claim of a paper beside our figure, and draw its figures.

    ``paper``: The paper: easy-pm or esd or pageforge or recam or sca or compositions or
    integrity.
    ``traces``: esd: recordings that stand in for its programs; default: the package's.
    pageforge: some of its applications, images of virtual machines.
    ``quick``: Fewer points; shorter traces, smaller programs.
    ``machine``: Default: the machine of the paper's name.
    ``set``: Set a key of the machine; repeatable.
    ``limit``: Use only the first N records of each trace.
    ``warmup``: Warm up with N requests (programs: transactions) or N % of the run, excluded from
    the statistics.
    ``copies``: esd: cores that each run a trace, with contents of their own; default: 8. 1 to
    1,024.
    ``seed``: Seed of generated traces and of programs.
    ``cells``: Cells of the sample; default: 200, of --quick 40 (pageforge: 40 and 8); 0 leaves
    the sample out. 0 to 100,000.
    ``population``: Run nothing: list what the sample's cells differ in.
    ``sensitivity``: Also run each assumed key at the ends of its range and all of them together,
    and say which conclusions flip.
    ``draws``: With --sensitivity: draws of all assumed keys together; default: 30. 0 to 10,000.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class Show(Value):
    """What ``show`` is asked."""

    name: str
    set: tuple[tuple[str, str], ...]


def show(
    name: str,
    *,
    set: Pairs = (),
    watch: Watch | None = None,
) -> None:
    """Print a machine's effective configuration as TOML: every key, with what is assumed.

    ``name``: A machine's name, or the path of its file.
    ``set``: Set a key of the machine; repeatable.
    """


class StoreCheck(Value):
    """What ``store check`` is asked."""

    folder: Path


def store_check(
    folder: Text,
    *,
    watch: Watch | None = None,
) -> None:
    """Read every block and compare it with its checksum, and count its references.

    ``folder``: The folder of ``store serve``.
    """


class StoreCompare(Value):
    """What ``store compare`` is asked."""

    designs: tuple[str, ...]
    block: str
    duplicates: float | None
    bytes: int
    written: int
    reads: float
    encrypted: bool
    seed: int
    tree: str | None
    trace: str | None
    capacity: int
    width: int
    modules: int
    single: bool
    starts: bool
    free_row: bool
    search_first: bool
    fingerprint: int
    compared_bit: str
    match_line: str
    written_bit: str
    endurance: str
    deduplicate: bool
    verify: bool
    by_content: bool
    cache_entries: int
    clock_mhz: int
    rival_cores: int
    request_cycles: str
    hash_cycles: str
    compare_cycles: str
    lookup_cycles: str
    fetch_us: str
    overlap: bool
    processor_watts: str
    memory_watts: str
    dir: str | None
    jobs: int | None


def store_compare(
    *,
    designs: Texts = ("recam", "conventional"),
    block: str = "4K",
    duplicates: float | None = None,
    bytes: int | str = 2_147_483_648,
    written: int | str = 2_147_483_648,
    reads: float = 0.0,
    encrypted: bool = False,
    seed: int = 0,
    tree: str | None = None,
    trace: str | None = None,
    capacity: int | str = 274_877_906_944,
    width: int = 256,
    modules: int = 1,
    single: bool = False,
    starts: bool = False,
    free_row: bool = False,
    search_first: bool = False,
    fingerprint: int = 0,
    compared_bit: str = "0.1-17",
    match_line: str = "0",
    written_bit: str = "1000-10000",
    endurance: str = "1e6-1e12",
    deduplicate: bool = True,
    verify: bool = True,
    by_content: bool = False,
    cache_entries: int = 262_144,
    clock_mhz: int = 2_700,
    rival_cores: int = 1,
    request_cycles: str = "5000-50000",
    hash_cycles: str = "4.99-7.7",
    compare_cycles: str = "0.1-1",
    lookup_cycles: str = "300-3000",
    fetch_us: str = "20-100",
    overlap: bool = False,
    processor_watts: str = "16.25-520",
    memory_watts: str = "3-24",
    dir: str | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Compare deduplicating stores: the resistive CAM simulated, the conventional one executed.

    ``designs``: Designs, separated by commas.
    ``block``: Size of a block: the paper's are 1K to 8K.
    ``duplicates``: Share of writes whose content was written before; default: 0.3, and of
    --trace what its digests say. 0 to 1.
    ``bytes``: What the stream writes, as in 50G.
    ``written``: The most that an executed store really writes of it.
    ``reads``: Share of operations that are reads, as in 0.7. 0 to 1.
    ``encrypted``: Encrypt each write before the store gets it.
    ``seed``: Seed of the stream.
    ``tree``: Write the files below this directory instead.
    ``trace``: Replay a block trace instead: FIU's with digests; MSR's or fio's, with
    --duplicates.
    ``capacity``: recam: bytes of data in the array.
    ``width``: recam: data bits of a row.
    ``modules``: recam: modules that work in parallel.
    ``single``: recam: no compare deactivates a row.
    ``starts``: recam: the first compare activates block starts alone.
    ``free_row``: recam: a write compares for an empty row first.
    ``search_first``: recam: an overwrite searches before it deletes.
    ``fingerprint``: recam: a row with so many bits of a hash first.
    ``compared_bit``: recam: femtojoules of a bit compared, or A-B.
    ``match_line``: recam: femtojoules of a match line, or A-B.
    ``written_bit``: recam: femtojoules of a bit written, or A-B.
    ``endurance``: recam: writes that a row survives, or A-B.
    ``deduplicate``: conventional: find duplicates; without, store all.
    ``verify``: conventional: compare bytes before believing a hash.
    ``by_content``: conventional: cut the tree's files by content.
    ``cache_entries``: conventional: chunks whose places are kept in memory.
    ``clock_mhz``: conventional: the processors' clock.
    ``rival_cores``: conventional: cores that share the work.
    ``request_cycles``: conventional: cycles of a request's file system, or A-B.
    ``hash_cycles``: conventional: cycles of SHA-1 a byte, or A-B.
    ``compare_cycles``: conventional: cycles of a compare a byte, or A-B.
    ``lookup_cycles``: conventional: cycles of a look-up in memory, or A-B.
    ``fetch_us``: conventional: microseconds of a look-up on the drive, or A-B.
    ``overlap``: conventional: the drive works while the processors do.
    ``processor_watts``: conventional: watts of its processors, or A-B.
    ``memory_watts``: conventional: watts of its memory, or A-B.
    ``dir``: Folder for the temporary files of an executed store.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    """


class StoreEstimate(Value):
    """What ``store estimate`` is asked."""

    path: str
    block: tuple[str, ...]
    content_defined: int
    trace: str | None
    memory: int
    state: Path | None
    plot: Path | None


def store_estimate(
    path: str,
    *,
    block: Texts = (),
    content_defined: int | str = 8_192,
    trace: str | None = None,
    memory: int | str = 1_073_741_824,
    state: Text | None = None,
    plot: Text | None = None,
    watch: Watch | None = None,
) -> None:
    """Tell what deduplication would save: distinct chunks, how often each comes, and the ratio.

    ``path``: A directory, a file, a device, or - for standard input.
    ``block``: Size of fixed blocks; repeatable. Default: 1K, 2K, 4K and 8K.
    ``content_defined``: Average size of chunks whose ends the content decides; none: no such
    chunks.
    ``trace``: PATH is a trace with digests for contents: fiu or destor.
    ``memory``: The most memory; beyond it counts are sampled.
    ``state``: Save the state here each minute and at Ctrl-C, and go on from it.
    ``plot``: Draw ratios, references and costs as HTML.
    """


class StoreServe(Value):
    """What ``store serve`` is asked."""

    socket: Path
    dir: Path
    design: str | None
    size: int | None
    block: str | None
    trace: Path | None


def store_serve(
    *,
    socket: Text,
    dir: Text,
    design: str | None = None,
    size: int | str | None = None,
    block: str | None = None,
    trace: Text | None = None,
    watch: Watch | None = None,
) -> None:
    """Serve a deduplicating store as a block device (NBD) until Ctrl-C, and count what it takes.

    ``socket``: The Unix socket to make, where clients connect.
    ``dir``: The folder that holds the store; made if new.
    ``design``: What counts the cost: recam or conventional; by default the first.
    ``size``: Size of a new device, as 1G.
    ``block``: Block of a new device. Default: 4K.
    ``trace``: A new file for the requests, with digests and without contents, which ``store
    compare --trace`` runs.
    """


class Sweep(Value):
    """What ``sweep`` is asked."""

    file: Path
    jobs: int | None
    shard: str | None
    plan: bool
    hq: Path | None


def sweep(
    file: Text,
    *,
    jobs: int | None = None,
    shard: str | None = None,
    plan: bool = False,
    hq: Text | None = None,
    watch: Watch | None = None,
) -> None:
    """Run every point of a sweep; DIR/results.parquet has a row a point, in the file's order.

    ``file``: The sweep's TOML file.
    ``jobs``: Runs at once; default: one a core. 1 to 1,024.
    ``shard``: Only the i-th of N shares of the points, for job arrays.
    ``plan``: Say how many points, how many are done, and what the rest would take.
    ``hq``: Run on the workers of this HyperQueue server.
    """


class TraceCheck(Value):
    """What ``trace check`` is asked."""

    traces: tuple[str, ...]
    max_problems: int


def trace_check(
    traces: Texts = (),
    *,
    max_problems: int = 20,
    watch: Watch | None = None,
) -> None:
    """Check every row of traces; the exit status is 1 if any is broken, 2 if any is unreadable.

    ``traces``: Trace files or recordings.
    ``max_problems``: Problems shown of each trace.
    """


class TraceConvert(Value):
    """What ``trace convert`` is asked."""

    source: str
    target: Path
    from_format: str | None
    to_format: str | None
    data: str
    seed: int
    clock_mhz: float | None
    levels: str | None


def trace_convert(
    source: str,
    target: Text,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    data: str = "unique",
    seed: int = 0,
    clock_mhz: float | None = None,
    levels: str | None = None,
    watch: Watch | None = None,
) -> None:
    """Convert another simulator's trace to ours, or ours to another's.

    ``source``: A trace file or a recording.
    ``target``: The file to write.
    ``from_format``: Format of SOURCE: sardonyx, nvmain, ramulator-load-store,
    ramulator-read-write, ramulator-instructions, ramulator-memory, dramsim2, dramsim3, dramsys,
    dramsys-relative, champsim, gem5-packets, pinatrace, lackey, dynamorio.
    ``to_format``: Format of TARGET: sardonyx, nvmain, ramulator-load-store, dramsim3, champsim.
    ``data``: What writes without bytes write: zero, random, unique.
    ``seed``: Seed of the contents that --data makes.
    ``clock_mhz``: Clock that SOURCE's cycles count; default: nvmain 2000, dramsim3 1200;
    gem5-packets 1000, into which ticks are turned. 0.001 to 1,000,000.0.
    ``levels``: ramulator-read-write: sizes of channel, rank, bank group, bank, row and column in
    lines; default: 1,2,4,4,65536,128.
    """


class TraceCut(Value):
    """What ``trace cut`` is asked."""

    source: str
    target: Path
    skip: int
    limit: int | None


def trace_cut(
    source: str,
    target: Text,
    *,
    skip: int = 0,
    limit: int | None = None,
    watch: Watch | None = None,
) -> None:
    """Copy a stretch of a trace.

    ``source``: A trace file or a recording.
    ``target``: The file to write.
    ``skip``: Records left out at the beginning.
    ``limit``: Records kept.
    """


class TraceInfo(Value):
    """What ``trace info`` is asked."""

    trace: str
    limit: int | None
    plot: Path | None


def trace_info(
    trace: str,
    *,
    limit: int | None = None,
    plot: Text | None = None,
    watch: Watch | None = None,
) -> None:
    """Count what is in a trace: records, duplicates, contents, collisions, locality.

    ``trace``: A trace file, a recording, or synth:NAME.
    ``limit``: Use only the first N records.
    ``plot``: Draw duplicates, locality and collisions as HTML.
    """


class TraceMix(Value):
    """What ``trace mix`` is asked."""

    traces: tuple[str, ...]
    output: Path


def trace_mix(
    traces: Texts = (),
    *,
    output: Text,
    watch: Watch | None = None,
) -> None:
    """Mix traces into one, as if each program had run on a core of its own at the same pace.

    ``output``: The file to write.
    ``traces``: Trace files or recordings, two or more.
    """


class TraceRecord(Value):
    """What ``trace record`` is asked."""

    program: tuple[str, ...]
    output: Path | None
    level: str | None
    l1: str
    l2: str
    llc: str
    non_inclusive: bool
    cores: int
    pages: str | None
    reuse: str
    clearing: str
    kernel_instructions: str
    memory: int
    skip: int
    limit: int | None
    skip_instructions: int
    limit_instructions: int | None
    follow_fork: bool | None
    read_data: bool
    pc: bool
    rest: int
    acks: bool
    acks_fd: int | None
    verify: bool
    qemu: Path | None


def trace_record(
    program: Texts = (),
    *,
    output: Text | None = None,
    level: str | None = None,
    l1: str = "32K:8",
    l2: str = "256K:8",
    llc: str = "16M:16",
    non_inclusive: bool = False,
    cores: int = 4,
    pages: str | None = None,
    reuse: str = "last-freed",
    clearing: str = "whole-lines",
    kernel_instructions: str = "1000:8",
    memory: int | str = 17_179_869_184,
    skip: int = 0,
    limit: int | None = None,
    skip_instructions: int = 0,
    limit_instructions: int | None = None,
    follow_fork: bool | None = None,
    read_data: bool = True,
    pc: bool = False,
    rest: int = 100,
    acks: bool = False,
    acks_fd: int | None = None,
    verify: bool = False,
    qemu: Text | None = None,
    watch: Watch | None = None,
) -> None:
    """Run a program and write down what it asks of memory, with the bytes.

    ``program``: What to run, after --.
    ``output``: The trace; by default PROGRAM.parquet, here.
    ``level``: memory: below the last-level cache. cpu: every load and store. By default memory,
    and cpu with --pc or --acks.
    ``l1``: Each core's first level, SIZE:WAYS.
    ``l2``: Each core's second level, SIZE:WAYS.
    ``llc``: The shared last level, SIZE:WAYS, or none.
    ``non_inclusive``: The last level does not include the others.
    ``cores``: Cores; threads take turns on them. 0 to 1,024.
    ``pages``: Where pages lie: sequential (frames in order of first touch), random[:SEED],
    pagemap (the kernel's; needs root), or, at level cpu only, virtual (the program's addresses).
    By default sequential, and virtual at level cpu.
    ``reuse``: Which free frame a page gets: last-freed, first-freed, or never one that another
    page had (with --pages sequential).
    ``clearing``: How the kernel clears a new page: whole-lines (overwritten, not fetched, as
    processors with fast strings do), fetched (each line is read first), or none (left out).
    ``kernel_instructions``: Instructions of the kernel for each page that it clears, and for
    each of its 64 lines; twice as many for a copied line.
    ``memory``: Size of physical memory for random page placement.
    ``skip``: Records left out first.
    ``limit``: Records kept; then the program is ended.
    ``skip_instructions``: Instructions before the first record.
    ``limit_instructions``: Instructions kept; then the program is ended.
    ``follow_fork``: Record forked children too, in NAME.1.parquet and so on. With --pc (where it
    is the default) their stores to mapped files go into the program's trace, in one order.
    ``read_data``: The first read of a line has its contents, which are what memory held.
    ``pc``: Record the place in the program of each store, flush and fence; for crash-test.
    ``rest``: With --pc: a thread rests so long after each of its first 16 stores to files at a
    place, so that threads overlap; 0: never. 0 to 1,000,000.
    ``acks``: Record what the program had printed at each moment; for crash-test.
    ``acks_fd``: The same for this descriptor instead of 1. 0 to 1,048,576.
    ``verify``: At the end, hold the trace against the program's memory, page by page.
    ``qemu``: QEMU's qemu-x86_64, 10.0 or newer, if not the one that comes with Sardonyx.
    """


class TraceSynth(Value):
    """What ``trace synth`` is asked."""

    spec: str
    target: Path
    records: int | None
    seed: int


def trace_synth(
    spec: str,
    target: Text,
    *,
    records: int | None = None,
    seed: int = 0,
    watch: Watch | None = None,
) -> None:
    """Generate a trace with stated statistics.

    ``spec``: A rung of the locality ladder, or a JSON file of a specification.
    ``target``: The file to write.
    ``records``: Records to generate.
    ``seed``: The same seed gives the same trace.
    """
