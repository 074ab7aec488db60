"""What each command is asked, as Rust declares it: written by tools/questions.py."""

from pathlib import Path
from typing import Any, Literal, Self

class Asked:
    command: str
    def json(self) -> str: ...
    def replace(self, **changes: Any) -> Self: ...

def schema_of(command: str) -> dict[str, Any]: ...
def whole(command: str, given: str) -> Any: ...

class CheckHost(Asked):
    log: str
    bound: float
    clocks: float
    path_ns: float

class Cite(Asked):
    result: Path
    latex: bool

class Compare(Asked):
    traces: tuple[str, ...]
    designs: tuple[str, ...]
    machine: str
    set: tuple[tuple[str, str], ...]
    near: str | None
    near_design: str | None
    limit: int | None
    addresses: str | None
    arrivals: str | None
    warmup: str | None
    sample: str | None
    copies: int
    distinct: bool
    threads: bool
    verify: bool
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
    out: Path | None

class CrashExhaustive(Asked):
    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: Literal["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    seed: int
    machine: str
    set: tuple[tuple[str, str], ...]
    no_log: bool
    sharing: str | None
    most_states: int
    order: str | None
    one_life: bool

class CrashOnce(Asked):
    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: Literal["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    seed: int
    machine: str
    set: tuple[tuple[str, str], ...]
    near: str | None
    near_design: str | None
    no_log: bool
    tear: Literal["lines", "words"]
    attack: bool | None
    recovery_cuts: int
    full: int
    out: Path
    jobs: int
    cuts: str
    sharing: Literal["apart", "packed", "interleaved"]

class CrashReplay(Asked):
    file: Path
    jobs: int

class CrashRun(Asked):
    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: Literal["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    seed: int
    machine: str
    set: tuple[tuple[str, str], ...]
    near: str | None
    near_design: str | None
    no_log: bool
    tear: Literal["lines", "words"]
    attack: bool | None
    recovery_cuts: int
    full: int
    out: Path
    jobs: int
    cuts: str
    thorough: float | None
    until_exercised: bool
    self_test: bool

class CrashStages(Asked):
    programs: tuple[str, ...]
    designs: tuple[str, ...]
    platform: Literal["adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"]
    cores: int | None
    transactions: int | None
    transaction_size: int | None
    footprint: int | None
    mutant: str | None
    seed: int
    machine: str
    set: tuple[tuple[str, str], ...]
    sharing: Literal["apart", "packed", "interleaved"]

class CrashTestFiles(Asked):
    program: tuple[str, ...]
    files: Path
    recover: str | None
    check: str | None
    list: bool
    platform: str
    budget: float
    errors: bool
    acks_fd: int
    acks_socket: bool
    client: str | None
    ready: str | None
    stop: str | None
    sector: int
    atomic_page: int
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
    verbose: bool
    seed: int
    jobs: int

class CrashTestLint(Asked):
    recording: Path
    pool: tuple[Path, ...]
    all: bool
    machine: str
    no_source: bool

class CrashTestReplay(Asked):
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

class CrashTestSearch(Asked):
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

class Curve(Asked):
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
    near: str | None
    near_design: str | None
    plot: Path | None
    jobs: int | None

class Designs(Asked): ...

class Diff(Asked):
    before: Path
    after: Path
    most: int
    exit_code: bool

class Doctor(Asked): ...

class Explore(Asked):
    traces: tuple[str, ...]
    sram: int
    designs: tuple[str, ...]
    goal: tuple[str, ...]
    at_most: tuple[str, ...]
    survives: str | None
    machine: str
    set: tuple[tuple[str, str], ...]
    near: str | None
    near_design: str | None
    limit: int | None
    transactions: int
    transaction_size: int
    footprint: int
    jobs: int | None
    out: Path

class Machines(Asked): ...

class Merge(Asked):
    machines: tuple[str, ...]
    pid: tuple[int, ...]
    mapping: tuple[str, ...]
    offered: bool
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
    out: Path | None

class MergeGenerate(Asked):
    mix: str
    target: Path
    pages: int
    passes: int

class MergeTime(Asked):
    applications: tuple[str, ...]
    designs: tuple[str, ...]
    memory: tuple[str, ...]
    machine: str
    set: tuple[tuple[str, str], ...]
    quick: bool
    seed: int
    jobs: int | None

class MergeWatch(Asked):
    pid: tuple[int, ...]
    named: tuple[str, ...]
    offered: bool
    every: float
    apart: float
    share: float
    rounds: int | None
    listen: str | None
    textfile: Path | None
    memory: int
    pass_in: int
    at_most: int

class Pack(Asked):
    result: Path
    out: Path

class Programs(Asked): ...
class Recordings(Asked): ...

class Report(Asked):
    directory: Path
    goal: tuple[str, ...]

class Reproduce(Asked):
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
    jobs: int | None
    out: Path | None

class Show(Asked):
    name: str
    set: tuple[tuple[str, str], ...]

class StoreCheck(Asked):
    folder: Path

class StoreCompare(Asked):
    designs: tuple[str, ...]
    block: int
    duplicates: float | None
    bytes: int
    written: int
    reads: float
    encrypted: bool
    seed: int
    tree: Path | None
    trace: Path | None
    set: tuple[tuple[str, str], ...]
    dir: Path | None
    jobs: int | None

class StoreEstimate(Asked):
    path: str
    block: tuple[int, ...]
    content_defined: str
    trace: str | None
    compress: int | None
    memory: int
    state: Path | None
    plot: Path | None

class StoreServe(Asked):
    socket: Path
    dir: Path
    design: str | None
    size: int | None
    block: int | None
    trace: Path | None

class Sweep(Asked):
    file: str | dict[str, Any]
    out: Path | None
    jobs: int | None
    shard: str | None
    plan: bool
    hq: Path | None

class TraceCheck(Asked):
    traces: tuple[str, ...]
    max_problems: int

class TraceConvert(Asked):
    source: str
    target: Path
    from_format: str | None
    to_format: str | None
    data: Literal["zero", "random", "unique"]
    seed: int
    clock_mhz: float | None
    levels: str | None

class TraceCut(Asked):
    source: str
    target: Path
    skip: int
    limit: int | None

class TraceInfo(Asked):
    trace: str
    limit: int | None
    plot: Path | None

class TraceMix(Asked):
    traces: tuple[str, ...]
    output: Path

class TraceRecord(Asked):
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

class TraceSynth(Asked):
    spec: str
    target: Path
    records: int | None
    seed: int
