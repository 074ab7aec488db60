# ruff: noqa: A002 - parameters have the options' names
"""The commands as functions, as Rust declares them: written by tools/questions.py."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from sardonyx.answer import Answer as Answer
from sardonyx.answer import Listed as Listed
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch

DESIGNS: tuple[str, ...]
SHORT: dict[str, str]
#: A word or a path, and several of them: one alone stands for a list of one.
Text: TypeAlias = str | os.PathLike[str]
#: A path, or results that are not saved.
Place: TypeAlias = Text | Results
Texts: TypeAlias = Text | Sequence[Text]

class Frame(Protocol):
    """A data frame of pandas or polars, or a table of Arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

#: Traces, as files or as frames, which may have names.
Traces: TypeAlias = Text | Frame | Sequence[Text | Frame] | Mapping[str, Frame]
#: Keys and their values, or texts KEY=VALUE.
Pairs: TypeAlias = Mapping[str, str | int | float | bool] | Texts

def load(path: Text) -> Results: ...
def synth(name: str, records: int | None = None, seed: int | None = None) -> str: ...
def call(command: str, *words: Any, **options: Any) -> Any: ...
def record(*program: Text, **options: Any) -> Answer: ...
def crash_files(*program: Text, **options: Any) -> Answer: ...
def check_host(
    log: str,
    *,
    bound: float = 5.0,
    clocks: float = 0.1,
    path_ns: float = 0.0,
    watch: Watch | None = None,
) -> Answer: ...
def cite(
    result: Place,
    *,
    latex: bool = False,
    watch: Watch | None = None,
) -> Answer: ...
def compare(
    traces: Traces,
    designs: Texts = ("baseline", "dedup-sha1", "dewrite", "esd"),
    machine: Text | Mapping[str, Any] = "esd",
    set: Pairs = (),
    *,
    near: str | None = None,
    near_design: str | None = None,
    limit: int | None = None,
    addresses: str | None = None,
    arrivals: str | None = None,
    warmup: str | None = None,
    sample: str | None = None,
    copies: int = 1,
    distinct: bool = False,
    threads: bool = False,
    verify: bool = True,
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
    out: Text | None = None,
    watch: Watch | None = None,
) -> Results: ...
def crash_exhaustive(
    programs: Texts = (),
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    *,
    platform: Literal[
        "adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"
    ] = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    seed: int = 1,
    machine: Text | Mapping[str, Any] = "sca",
    set: Pairs = (),
    no_log: bool = False,
    sharing: str | None = None,
    most_states: int = 1_000_000,
    order: str | None = None,
    one_life: bool = False,
    watch: Watch | None = None,
) -> Answer: ...
def crash_once(
    programs: Texts = (),
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    *,
    platform: Literal[
        "adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"
    ] = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    seed: int = 1,
    machine: Text | Mapping[str, Any] = "sca",
    set: Pairs = (),
    near: str | None = None,
    near_design: str | None = None,
    no_log: bool = False,
    tear: Literal["lines", "words"] = "lines",
    attack: bool | None = None,
    recovery_cuts: int = 64,
    full: int = 509,
    out: Text = "results/crash",
    jobs: int = 0,
    cuts: str = "all",
    sharing: Literal["apart", "packed", "interleaved"] = "apart",
    watch: Watch | None = None,
) -> Answer: ...
def crash_replay(
    file: Place,
    jobs: int = 0,
    *,
    watch: Watch | None = None,
) -> Answer: ...
def crash_run(
    programs: Texts = (),
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    *,
    platform: Literal[
        "adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"
    ] = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    seed: int = 1,
    machine: Text | Mapping[str, Any] = "sca",
    set: Pairs = (),
    near: str | None = None,
    near_design: str | None = None,
    no_log: bool = False,
    tear: Literal["lines", "words"] = "lines",
    attack: bool | None = None,
    recovery_cuts: int = 64,
    full: int = 509,
    out: Text = "results/crash",
    jobs: int = 0,
    cuts: str = "all",
    thorough: float | str | None = None,
    until_exercised: bool = False,
    self_test: bool = False,
    watch: Watch | None = None,
) -> Answer: ...
def crash_stages(
    programs: Texts = (),
    designs: Texts = ("sca", "fca", "co-located", "co-located-cc", "no-encryption", "no-atomicity"),
    *,
    platform: Literal[
        "adr", "eadr", "bbb", "none", "gpf", "gpf-failed", "gpf-device", "gpf-part"
    ] = "adr",
    cores: int | None = None,
    transactions: int | None = None,
    transaction_size: int | str | None = None,
    footprint: int | str | None = None,
    mutant: str | None = None,
    seed: int = 1,
    machine: Text | Mapping[str, Any] = "sca",
    set: Pairs = (),
    sharing: Literal["apart", "packed", "interleaved"] = "apart",
    watch: Watch | None = None,
) -> Answer: ...
def crash_test_files(
    program: Texts,
    *,
    files: Text,
    recover: str | None = None,
    check: str | None = None,
    list: bool = False,
    platform: str = "ext4-ordered",
    budget: float | str = 50.0,
    errors: bool = False,
    acks_fd: int = 1,
    acks_socket: bool = False,
    client: str | None = None,
    ready: str | None = None,
    stop: str | None = None,
    sector: int | str = 0,
    atomic_page: int | str = 0,
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
    verbose: bool = False,
    seed: int = 1,
    jobs: int = 0,
    watch: Watch | None = None,
) -> Answer: ...
def crash_test_lint(
    recording: Place,
    *,
    pool: Text | Sequence[Place],
    all: bool = False,
    machine: str = "sca",
    no_source: bool = False,
    watch: Watch | None = None,
) -> Answer: ...
def crash_test_replay(
    recording: Place,
    image: str,
    *,
    pool: Text | Sequence[Place],
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
) -> Answer: ...
def crash_test_search(
    recording: Place,
    *,
    pool: Text | Sequence[Place],
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
) -> Answer: ...
def curve(
    machine: Text | Mapping[str, Any] = "cxl",
    designs: Texts = ("no-encryption",),
    *,
    reads: str | None = None,
    outstanding: int = 256,
    streams: int = 16,
    bytes: int | str = 1_073_741_824,
    requests: int = 60_000,
    seed: int = 1,
    measured: str | None = None,
    in_order: bool = False,
    set: Pairs = (),
    near: str | None = None,
    near_design: str | None = None,
    plot: Text | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def designs(
    *,
    watch: Watch | None = None,
) -> Listed: ...
def diff(
    before: Place,
    after: Place,
    *,
    most: int = 20,
    exit_code: bool = False,
    watch: Watch | None = None,
) -> Answer: ...
def doctor(
    *,
    watch: Watch | None = None,
) -> Listed: ...
def explore(
    traces: Traces,
    *,
    sram: int | str = 1_048_576,
    designs: Texts = ("sca", "baseline", "dedup-sha1", "dewrite", "esd"),
    goal: Texts = (),
    at_most: Texts = (),
    survives: str | None = None,
    machine: Text | Mapping[str, Any] = "esd",
    set: Pairs = (),
    near: str | None = None,
    near_design: str | None = None,
    limit: int | None = None,
    transactions: int = 10_000,
    transaction_size: int | str = 64,
    footprint: int | str = 16_777_216,
    jobs: int | None = None,
    out: Text = "results/explore",
    watch: Watch | None = None,
) -> Answer: ...
def machines(
    *,
    watch: Watch | None = None,
) -> Listed: ...
def merge(
    machines: Texts = (),
    *,
    pid: int | Sequence[int] = (),
    mapping: Texts = (),
    offered: bool = False,
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
    out: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def merge_generate(
    mix: str,
    target: Place,
    *,
    pages: int = 4_096,
    passes: int = 1,
    watch: Watch | None = None,
) -> Answer: ...
def merge_time(
    applications: Texts = (),
    designs: Texts = ("none", "ksm", "pageforge"),
    *,
    memory: Texts = ("no-encryption",),
    machine: Text | Mapping[str, Any] = "pageforge",
    set: Pairs = (),
    quick: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def merge_watch(
    *,
    pid: int | Sequence[int] = (),
    named: Texts = (),
    offered: bool = False,
    every: float = 60.0,
    apart: float = 1.0,
    share: float = 1.0,
    rounds: int | None = None,
    listen: str | None = None,
    textfile: Text | None = None,
    memory: int | str = 67_108_864,
    pass_in: int = 200,
    at_most: int = 70,
    watch: Watch | None = None,
) -> Answer: ...
def pack(
    result: Place,
    *,
    out: Text,
    watch: Watch | None = None,
) -> Answer: ...
def programs(
    *,
    watch: Watch | None = None,
) -> Listed: ...
def recordings(
    *,
    watch: Watch | None = None,
) -> Listed: ...
def report(
    directory: Place,
    *,
    goal: Texts = (),
    watch: Watch | None = None,
) -> Answer: ...
def reproduce(
    paper: str,
    traces: Traces = (),
    *,
    quick: bool = False,
    machine: Text | Mapping[str, Any] | None = None,
    set: Pairs = (),
    limit: int | None = None,
    warmup: str | None = None,
    copies: int | None = None,
    seed: int = 0,
    cells: int | None = None,
    population: bool = False,
    sensitivity: bool = False,
    jobs: int | None = None,
    out: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def show(
    name: str,
    set: Pairs = (),
    *,
    watch: Watch | None = None,
) -> Answer: ...
def store_check(
    folder: Place,
    *,
    watch: Watch | None = None,
) -> Answer: ...
def store_compare(
    designs: Texts = ("recam", "conventional"),
    *,
    block: int | str = 4_096,
    duplicates: float | None = None,
    bytes: int | str = 2_147_483_648,
    written: int | str = 2_147_483_648,
    reads: float = 0.0,
    encrypted: bool = False,
    seed: int = 0,
    tree: Text | None = None,
    trace: Text | None = None,
    set: Pairs = (),
    dir: Text | None = None,
    jobs: int | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def store_estimate(
    path: str,
    *,
    block: int | str | Sequence[int | str] = (),
    content_defined: str = "8K",
    trace: str | None = None,
    compress: int | None = None,
    memory: int | str = 1_073_741_824,
    state: Text | None = None,
    plot: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def store_serve(
    *,
    socket: Text,
    dir: Text,
    design: str | None = None,
    size: int | str | None = None,
    block: int | str | None = None,
    trace: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def sweep(
    file: Text | Mapping[str, Any],
    out: Text | None = None,
    jobs: int | None = None,
    *,
    shard: str | None = None,
    plan: bool = False,
    hq: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def trace_check(
    traces: Traces,
    *,
    max_problems: int = 20,
    watch: Watch | None = None,
) -> Listed: ...
def trace_convert(
    source: str,
    target: Place,
    *,
    from_format: str | None = None,
    to_format: str | None = None,
    data: Literal["zero", "random", "unique"] = "unique",
    seed: int = 0,
    clock_mhz: float | None = None,
    levels: str | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def trace_cut(
    source: str,
    target: Place,
    *,
    skip: int = 0,
    limit: int | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def trace_info(
    trace: str,
    *,
    limit: int | None = None,
    plot: Text | None = None,
    watch: Watch | None = None,
) -> Answer: ...
def trace_mix(
    traces: Traces,
    *,
    output: Text,
    watch: Watch | None = None,
) -> Answer: ...
def trace_record(
    program: Texts = (),
    output: Text | None = None,
    *,
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
) -> Answer: ...
def trace_synth(
    spec: str,
    target: Place,
    *,
    records: int | None = None,
    seed: int = 0,
    watch: Watch | None = None,
) -> Answer: ...

crash = crash_run
crash_test = crash_test_search
estimate = store_estimate
store = store_compare
