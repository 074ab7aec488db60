"""What the native module is asked, as Rust declares it: written by tools/questions.py.

A type is one JSON document. What may be left out has its default here, as it has there.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from sardonyx.values import Value


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
    atomic_page: int = 0
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
    #: The name of a [``file_system``](crate::file_system).
    platform: str = "ext4-ordered"
    #: Whether images that differ in what the recovery reads come first, or all in one order.
    reads_first: bool = True
    #: Seconds that the program may run.
    record_limit: float = 50.0
    #: The words of the recovery's command, with ``{dir}`` and ``{acks}``; none if the operations
    #: are only to be listed.
    recover: tuple[str, ...] = ()
    #: Bytes of a disk's sector, and of a page that is written whole or not at all; 0 for those of
    #: the platform.
    sector: int = 0
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
    """A recorded block trace: FIU's with digests, MSR's, fio's, MQSim's or blkparse's without."""

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
    long, with ``until_exercised`` as its lacks ask for. With ``attack`` an attacker changes the
    medium as well; if it is null, where the design has integrity.
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
    until_exercised: bool = False
