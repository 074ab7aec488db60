"""The native module: the simulator behind functions that take and give JSON text.

Every function that computes releases the interpreter's lock. Errors are ``SardonyxError`` with
the place and the remedy.
"""

from collections.abc import Mapping
from pathlib import Path

VERSION: str

class SardonyxError(Exception):
    """Bad input: the message has the place and the remedy."""

class WrongRead(SardonyxError):
    """A design gave back another byte than was written: the message has the record and the line."""

class Progress:
    """How far a run is; any thread may look."""

    def __init__(self) -> None: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int:
        """Requests in all; 0 while unknown."""

    def cancel(self) -> None:
        """Ask the run to end with an error at its next look."""

def simulate(job_json: str, progress: Progress | None) -> str:
    """One run of a ``runs.jobs.Job``: ``design``, ``machine``, ``copies``, ``metrics``, ``causes``,
    ``write_latency_cdf``, ``read_latency_cdf``, ``assumed``.
    """

def idle_keys(design: str) -> set[str]:
    """The keys of layers that a design does not have: they do nothing for it."""

def assumed_keys(
    machine: str, overrides: list[tuple[str, str]], design: str, programs: bool
) -> set[str]:
    """The assumed keys on which runs of a design on a machine depend: of programs, or of traces."""

def caches(design: str) -> list[str]:
    """The keys with the bytes of the caches and tables on chip of a design."""

Known = tuple[Mapping[str, Path], Mapping[str, Path]]

def plan(points_json: str, recordings: Known, checked: bool) -> str:
    """What points come to: ``machine``, ``points`` with the number of their ``job``, the ``jobs``
    that they share, those of mixes' traces ``alone``, ``traces``, and ``notes``.
    """

def comparison(asked_json: str, recordings: Known) -> str:
    """The same of what ``compare`` is asked, checked."""

def check_designs(names: list[str]) -> list[str]:
    """The designs, none of them twice; an error names the nearest of an unknown one."""

def sources(texts: list[str], limit: int | None, sizes_json: str | None, recordings: Known) -> str:
    """Pairs of a name and a source, as users write them."""

def check_sources(sources_json: str, recordings: Known) -> list[str]:
    """An error unless all can be read; lines about those that end before their ``limit``."""

def check_trace_file(path: str, recordings: Known) -> None:
    """An error unless there is such a file."""

def warmup(text: str) -> tuple[int, float]:
    """A number of requests and a share of the run: ``20000`` is one, ``50%`` the other."""

def check_job(job_json: str) -> None:
    """An error unless the job's machine can be had and its program fits on so many cores."""

def trace_info(source_json: str, progress: Progress | None) -> str:
    """What is in a ``runs.sources.Source``. A trace: numbers, ``locality`` and ``collisions``; a
    program: ``program``, ``description``, its sizes, ``transactions`` and ``seed``.
    """

def trace_check(path: str, max_problems: int, progress: Progress | None) -> str:
    """``records``, ``bad`` and ``problems`` (``row``, ``problem``), as many as asked for."""

def trace_convert(asked: str, progress: Progress | None) -> str:
    """``records`` written for a ``questions.TraceConvert``, and how many were ``left_out`` that the
    other format does not have.
    """

def trace_synth(spec_json: str, dst: str, seed: int, progress: Progress | None) -> str:
    """``records`` written to the generated trace."""

def trace_cut(src: str, dst: str, skip: int, limit: int | None, progress: Progress | None) -> str:
    """``records`` written to the stretch."""

def trace_mix(sources: list[str], dst: str, progress: Progress | None) -> str:
    """``records`` written to the mixed trace."""

def crash_test(question_json: str, progress: Progress | None) -> str:
    """A recording's cuts tried with its program's own recovery (``questions.CrashTestQuestion``):
    ``violations``, ``causes``, ``suspects`` and what was done.
    """

def crash_files(question_json: str, progress: Progress | None) -> str:
    """A program that writes files run, and its own recovery on what cuts could leave of a folder
    (``questions.CrashFilesQuestion``): ``violations``, ``causes`` and what was done; without a
    recovery the ``list`` of its operations.
    """

class RecordedFiles:
    """A program that writes files run and recorded (``questions.CrashFilesQuestion`` without a
    recovery), to be held against folders that real cuts left.
    """

    operations: list[str]
    acknowledged: list[int]  # the cut after each acknowledgement
    doubts: list[str]  # what was not followed
    def __init__(self, question_json: str) -> None: ...
    def read(self, folder: str) -> int:
        """The number of a folder that a cut left; equal ones have one."""

    def leaves(self, platform: str, cut: int) -> list[bool | None]:
        """Whether the model leaves each folder that was read; None: it has too many ways."""

    def count(
        self, platform: str, cut: int, reached: list[int], most: int
    ) -> tuple[int, int] | None:
        """How many folders the model leaves, if not more than ``most``, and how many of those are
        ``reached``.
        """

def crash_designs(
    question_json: str,
    start: tuple[int, float],
    machine: str,
    designs: list[str],
    cuts: tuple[int, int],
    progress: Progress | None,
) -> str:
    """What of the pool reads as something that the program stored, after cuts below each design:
    ``designs``, each ``plain`` and ``marked``, and ``recovered``: of how many cuts the recovery was
    tried, and with how many it copes. ``start`` is a row and a recovery's seconds, ``cuts`` how
    many and after one in how many the recovery is run.
    """

def crash_orders(
    question_json: str, from_row: int, most: int, progress: Progress | None
) -> list[str]:
    """Names of other orders of the recording's threads, for ``Question.thread_order``."""

def crash_lint(
    recording: str,
    pools: list[str],
    source: bool,
    folder: str | None,
    progress: Progress | None,
) -> str:
    """What a recording shows without running anything: ``findings``, and counts; into ``folder``
    come short recordings ``all``, without idle ``flushes`` and without idle ``fences``.
    """

class Recording:
    """How far a recording is."""

    instructions: int
    records: int
    bytes: int
    def __init__(self) -> None: ...
    def stop(self) -> None:
        """Ask the program to end; what was recorded is kept."""

def trace_record(asked: str, plugin: str, recording: Recording) -> str:
    """``traces``, ``status``, ``signal`` and ``seconds`` of a program run and recorded."""

def ladder() -> str:
    """The specifications of the locality ladder's rungs, each with ``name`` and ``records``."""

def machines() -> str:
    """``name`` and ``source`` of every preset, the default first."""

def machine(name_or_path: str, overrides: list[tuple[str, str]]) -> str:
    """A checked machine: ``name``, ``source``, ``toml``, ``parameters`` (flat), ``assumed``."""

def figures() -> str:
    """Every figure that a run can have, as a JSON array of objects: ``name``, ``about`` (a title of
    the page of metrics), ``unit``, ``better`` (``less``, ``more`` or empty) and ``meaning``.
    """

def merge_figures() -> str:
    """The same of a window of merging in time."""

def causes() -> str:
    """What is booked under each cause, as a JSON object by the cause's name."""

def designs() -> str:
    """``name``, ``source`` and ``line`` of every design."""

def integrities() -> str:
    """The schemes of integrity: of each ``name``, ``line`` and which attacks it ``refuses``."""

def integrity_room(design: str, machine: str, overrides: list[tuple[str, str]]) -> str:
    """Bytes that a design's integrity takes: ``regions``, ``register_bytes``, ``cache_bytes``,
    beside ``data_bytes``.
    """

def integrity_recovery(
    design: str,
    machine: str,
    overrides: list[tuple[str, str]],
    lines: int,
    written: int,
    since: int,
) -> str:
    """What a recovery of integrity does after a cut: ``reads``, ``hashes``, ``writes``,
    ``time_ns``, ``dirty``, ``refused``. Of ``lines`` lines ``written`` were written and all
    written back, then ``since`` lines among them.
    """

def crash(question_json: str, progress: Progress | None) -> str:
    """What the power cuts of a ``runs.crashes.CrashQuestion`` show: counts, ``fails`` and
    ``violations``. Progress counts cuts.
    """

def crash_exhaustive(question_json: str, progress: Progress | None) -> str:
    """Try all orders in which the writes of a run can be accepted; the answer is JSON.

    Raises:
        SardonyxError: The question is wrong, or the run was cancelled.
    """

def crash_trial(question_json: str, progress: Progress | None) -> str:
    """What a ``runs.crashes.TrialQuestion`` shows: counts over all passes and by pass, ``verdict``,
    ``fails`` and ``violations``. Progress counts passes, or seconds of a thorough trial.
    """

def crash_self_test(question_json: str, progress: Progress | None) -> str:
    """Faults planted into a ``TrialQuestion``'s design, by what its plan says: ``caught``,
    ``missed``, ``equivalent`` and ``no_occasion``. Progress counts faults.
    """

def crash_memory(question_json: str) -> int:
    """Bytes of memory that the run of a ``CrashQuestion`` needs, about."""

def crash_runs(command: str, asked_json: str) -> str:
    """The runs of what a command about cuts is asked: of each ``label``, ``question`` and
    ``memory``, the bytes that it needs.
    """

def crash_trial_memory(question_json: str) -> int:
    """Bytes of memory that the largest run of a ``TrialQuestion`` needs, about."""

def crash_stages(question_json: str, progress: Progress | None) -> str:
    """What each stage of a transaction has shown, the power cut likewise (SCA Table 1).

    ``stages``: for each ``cuts``, at how many the ``backup_usable`` and the ``data_usable`` are, at
    how many recovery ``takes_backup`` or ``takes_data``, and at how many it has ``recovered``.
    """

def programs() -> str:
    """``programs`` (``name``, ``line``), ``mutants``, ``equivalent_mutants`` and
    ``drained_mutants`` (``name``, ``meaning``)."""

def parse_size(text: str) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``; ``ValueError`` says what to give."""

def end_in_time() -> int:
    """A descriptor for ``signal.set_wakeup_fd``: a signal that ends us does so within two seconds,
    whatever native code does."""

def end_patiently(patient: bool) -> None:
    """Say that the program ends in its own time after a signal, or no longer."""

def questions() -> str:
    """What these functions are asked (``sardonyx.questions``), as JSON schemas by name."""

def store_designs() -> str:
    """Every store design (``runs.stores.Design``); the first is a device's by default."""

def store_keys(design_json: str) -> str:
    """All keys of a ``runs.stores.StoreDesign`` with their values, as pairs."""

def store_plan(asked: str) -> str:
    """What is known before a ``questions.StoreEstimate`` is read: ``bytes`` (null of a stream),
    ``files``, ``memory_bytes`` at most, and whether the counts will be ``exact`` in any case.
    """

def store_estimate(asked: str, scratch: str, progress: Progress | None) -> str:
    """``found`` (``bytes``, ``files``, ``unreadable``, ``reads`` and ``cuttings``, each with
    ``kind``, ``chunks``, ``unique_chunks``, ``ratio``, ``references`` and more) and ``designs``,
    what each would take. In ``scratch``, an empty folder, the rival is measured. Progress counts
    bytes.
    """

def accesses_point(question_json: str) -> str:
    """What a load of threads (``AccessesQuestion``) comes to: bandwidth, latencies, blocks."""

def curve_point(question_json: str) -> str:
    """What a steady load on a memory (``CurveQuestion``) comes to: bandwidth and latencies."""

def store_check(folder: str, progress: Progress | None) -> str:
    """``live_blocks``, ``stored_blocks`` and ``faults`` of a device's folder. Progress counts
    distinct contents.
    """

def guarantee(design: str) -> str:
    """What a design, or ``MAPPING+POLICY``, promises of the lines that a power cut leaves."""

def store(question_json: str, progress: Progress | None) -> str:
    """``design`` and ``metrics`` of a ``runs.stores.StoreQuestion``."""

def store_runs(asked: str) -> str:
    """The runs of a ``questions.StoreCompare``: a ``questions.StoreQuestion`` for each design."""

def check_store(question_json: str) -> None:
    """An error unless the question can be answered: its array can be, its workload is there."""

def merge(question_json: str, progress: Progress | None) -> str:
    """The runs of a ``questions.MergeQuestion``: ``runs``, ``machines``, ``settings``,
    ``assumed``; ``why_not``, ``what_if`` and ``owners`` if asked for. Progress counts pages.
    """

def merge_timed(question_json: str, progress: Progress | None) -> str:
    """What merging costs, of a ``questions.TimedQuestion``: ``metrics``, ``bandwidths_gb_s``,
    ``settings``, ``parameters`` and ``assumed``. Progress counts simulated nanoseconds.
    """

def merge_timed_keys(question_json: str) -> str:
    """The keys of that question that are no machine's: ``settings`` and ``assumed``."""

def check_merge_timed(question_json: str) -> None:
    """An error unless that question can be answered."""

def merge_algorithms() -> str:
    """The merging algorithms: ``name``, ``line``, ``source``, ``merges`` and ``keys`` of each."""

def merge_mixes() -> list[str]:
    """The mixes that can be generated."""

def merge_snapshot(mix: str, pages: int, pass_: int) -> bytes:
    """A raw dump of a generated machine at a pass, from 1."""

def parquet_of(
    columns: list[tuple[str, list[str] | list[float | None]]], whole: list[str]
) -> bytes:
    """The Parquet file with these columns; those named in ``whole`` are whole numbers."""

def register_layer(made: type, declaration_json: str) -> None:
    """Register a class as a layer and a design (``sardonyx.layers``)."""

def check_bits(data: bytes) -> int:
    """The check bits of a line, which come with it: 64 bits, of a truncated Hamming code."""

class Step:
    """A moment in a plan; ``PAST`` has always been."""

    PAST: Step

class Stored:
    """The two moments of a write: in the persistence domain, and in the medium's array."""

    def __init__(self, accepted: Step, done: Step | None = None) -> None: ...
    @property
    def accepted(self) -> Step: ...
    @property
    def done(self) -> Step: ...
    def also(self, other: Stored, plan: Plan) -> Stored:
        """Both writes."""

class Write:
    """A write of one line."""

    @property
    def line(self) -> int:
        """The line: a mapping's number of it, or a place."""
    @property
    def data(self) -> bytes:
        """Its 64 bytes."""
    @property
    def at(self) -> Step:
        """When the bytes exist."""
    @property
    def gate(self) -> Step:
        """Nothing is sent to the layer below before this."""
    @property
    def is_log(self) -> bool:
        """A record of a log, which must not be deduplicated."""
    @property
    def atomic(self) -> bool:
        """It must persist together with its metadata, or not at all."""
    def to(
        self,
        line: int,
        *,
        data: bytes | None = None,
        at: Step | None = None,
        gate: Step | None = None,
        atomic: bool | None = None,
    ) -> Write:
        """The write of another line; with other bytes, or at other moments."""

class Because:
    """What ``Plan.because`` gives."""

    def __enter__(self) -> None: ...
    def __exit__(self, *raised: object) -> bool: ...

class Plan:
    """The plan of the request at hand; of no use afterwards."""

    def unit(self, unit: str, after: Step) -> Step:
        """Uses a unit on chip, as ``"compare"``; when it is done."""
    def all(self, *steps: Step) -> Step:
        """When all of these are over."""
    def because(self, cause: str) -> Because:
        """``with plan.because("mapping"):`` books what is planned within under that cause."""
    def exercise(self, mechanism: str) -> None:
        """Counts that one of the layer's mechanisms has been used."""
    def full(self, line: int, remedy: str) -> tuple[int, Step]:
        """No place is free: the run ends. Until then the line may lie at its own place."""
    def refuse(self, place: int) -> None:
        """The line at a place is not what was written there last."""
    def read(self, place: int, after: Step) -> tuple[bytes | None, Step]:
        """Reads a line of the medium."""
    def write(
        self,
        place: int,
        data: bytes,
        at: Step,
        gate: Step | None = None,
        beside: bytes | None = None,
    ) -> Stored:
        """Writes a line of the medium, with eight bytes beside it if there are any."""
    def beside(self, place: int) -> bytes | None:
        """The eight bytes beside a line of the medium, as they are known on chip."""
    def sealed(self, stored: Stored, place: int, counter: int) -> None:
        """Says that a write is encrypted under a counter."""
    def scan(self, place: int) -> bytes | None:
        """A recovery's look at a line of the medium; ``None`` if it was never written."""
    def written(self, table: Table) -> list[int]:
        """The places of a table that have been written."""
    def group(self, writes: list[Stored]) -> None:
        """All of these writes are accepted at one instant, or none of them."""

class Below:
    """The layer below a mapping: the encryption."""

    def read(
        self, place: int, after: Step, plan: Plan, is_log: bool = False
    ) -> tuple[bytes | None, Step]:
        """Reads the line at a place."""
    def write(self, write: Write, plan: Plan) -> Stored:
        """Writes a line to a place."""
    def persist(self, place: int, after: Step, plan: Plan) -> Stored:
        """Writes back what the layer below keeps of the lines around a place."""
    def discard(self, place: int, after: Step, plan: Plan) -> None:
        """A line was encrypted ahead, and turned out not to be needed."""

class Memory:
    """What a layer is built from: the machine's settings, and room in the medium."""

    @property
    def lines(self) -> int:
        """Lines of data, by number from 0."""
    @property
    def below(self) -> Below: ...
    def key(self, name: str) -> int | float | bool | str:
        """The value of one of the machine's keys; times in ns, energies in nJ."""
    def table(self, name: str, lines: int) -> Table:
        """Lines of the medium for a table, by a name."""
    def cache(self, name: str, unit: str = "metadata", least_used: bool = False) -> Cache:
        """The cache of the keys ``NAME.bytes`` and ``NAME.ways``."""
    def mapping(self, cache: str, counted: bool = True, least_used: bool = False) -> MappingTable:
        """A table from lines to places, read through a cache of those keys."""
    def places(self) -> Places: ...
    def fingerprints(self) -> Fingerprints:
        """ESD's fingerprint table, of the keys ``esd.efit_*``."""
    def pads(self) -> PadMaker: ...

class Table:
    """Lines of the medium with a name."""

    @property
    def first(self) -> int: ...
    def line(self, index: int) -> int:
        """The place of one of its lines."""

class Lookup:
    """A line that was looked up in a cache; good until the next look-up."""

    @property
    def at(self) -> Step: ...
    @property
    def hit(self) -> bool: ...

class Cache:
    """A write-back cache on chip of lines of a table."""

    def get(self, place: int, after: Step, plan: Plan) -> Lookup:
        """Looks up the line at a place; on a miss it is fetched."""
    def line(self, cached: Lookup) -> bytes: ...
    def set(self, cached: Lookup, at: int, data: bytes, ripe: Step, plan: Plan) -> None:
        """Changes bytes of a line just looked up; they may leave the chip after ``ripe``."""
    def ripe(self, cached: Lookup) -> Step:
        """When all changes of a line just looked up may leave the chip."""
    def persist(self, place: int, after: Step, plan: Plan) -> Stored:
        """Writes the line at a place back, if it differs from the medium's."""
    def flush(self, plan: Plan) -> None: ...
    @property
    def hits(self) -> tuple[int, int]:
        """Look-ups that hit, and all."""
    def forget(self) -> None: ...

class Entry:
    """The entry of a line in a mapping table."""

    @property
    def place(self) -> int | None: ...
    @property
    def at(self) -> Step: ...

class MappingTable:
    """A table from lines to places, with a count of references for each place."""

    def read(
        self, line: int, after: Step, plan: Plan, is_log: bool = False
    ) -> tuple[bytes | None, Step]:
        """Reads a line from where it lies."""
    def find(self, line: int, after: Step, plan: Plan) -> Entry:
        """Looks a line up, for a write that will change its entry."""
    def give_up(self, entry: Entry, after: Step, plan: Plan) -> Entry:
        """Looks an entry up again, which has no place now."""
    def set(self, entry: Entry, place: int, decided: Step, ripe: Step, plan: Plan) -> None:
        """The entry's line lies there from ``decided`` on; it may leave the chip after ``ripe``."""
    def refer(self, place: int, decided: Step, ripe: Step, plan: Plan, first: bool = False) -> bool:
        """One more line refers to a place, or the first; whether the count is full now."""
    def unrefer(self, place: int, decided: Step, ripe: Step, plan: Plan) -> int | None:
        """One line less: how many still refer to it, ``None`` where the count was full or lost."""
    def persist(self, entry: Entry, stored: Stored, atomic: bool, plan: Plan) -> Stored:
        """A write, and after it the entry of its line where that must persist with it."""
    def persist_around(self, line: int, after: Step, plan: Plan) -> Stored:
        """Writes back the entries of the lines around one."""
    def recover(self, places: Places, plan: Plan) -> None:
        """Reads the whole table after a cut, and takes the places that it names."""
    def flush(self, plan: Plan) -> None: ...
    @property
    def mapped(self) -> int:
        """Lines that have a place."""
    def figures(self) -> dict[str, float | tuple[int, int]]: ...
    @property
    def hits(self) -> tuple[int, int]: ...
    def forget(self) -> None: ...

class Places:
    """Which places are free."""

    def allocate(self, home: int, plan: Plan) -> tuple[int, Step] | None:
        """A free place, and the step before which it must not be written."""
    def leave(self, place: int, left: int, unmapped: Step, plan: Plan) -> bool:
        """A line has left a place to which ``left`` others refer; whether it is free now."""
    def take(self, place: int) -> None: ...
    @property
    def in_use(self) -> int: ...

class Similar:
    """An entry of the fingerprint table."""

    @property
    def place(self) -> int: ...
    @property
    def at(self) -> Step: ...
    @property
    def refer(self) -> int: ...

class Fingerprints:
    """ESD's fingerprint table: check bits to a place that had such a line."""

    def tick(self) -> bool:
        """Counts a look-up; whether the table was refreshed by it."""
    def find(self, check: int, after: Similar | None = None) -> Similar | None: ...
    def refer(self, similar: Similar) -> None: ...
    def insert(self, check: int, place: int, at: Step) -> bool:
        """Enters a line; whether another had to leave."""
    def replace(self, similar: Similar, place: int, at: Step) -> None: ...
    def forget(self, place: int) -> None: ...

class PadMaker:
    """AES-128 in counter mode over (place, counter)."""

    def crypt(self, place: int, counter: int, data: bytes) -> bytes: ...

def commands() -> list[str]:
    """The names of all commands that are declared in Rust."""

def command(name: str) -> str:
    """What a command is asked, as a JSON schema whose ``order`` has the options in theirs."""

def asked(name: str, given: str) -> str:
    """The whole question of a command from what was given: checked, and with its defaults."""
