"""The native module: the simulator behind functions that take and give JSON text.

Every function that computes releases the interpreter's lock. Errors are ``SardonyxError`` with
the place and the remedy.
"""

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

def check_job(job_json: str) -> None:
    """An error unless the job's machine can be had and its program fits on so many cores."""

def trace_info(source_json: str, progress: Progress | None) -> str:
    """What is in a ``runs.sources.Source``. A trace: numbers, ``locality`` and ``collisions``; a
    program: ``program``, ``description``, its sizes, ``transactions`` and ``seed``.
    """

def trace_check(path: str, max_problems: int, progress: Progress | None) -> str:
    """``records``, ``bad`` and ``problems`` (``row``, ``problem``), as many as asked for."""

def trace_convert(conversion_json: str, progress: Progress | None) -> str:
    """``records`` written. ``source``, ``target``, ``from_format``, ``to_format``; ``data`` fills
    writes without bytes: zero, random or unique, made of ``seed``; ``clock_mhz`` is the clock of a
    trace that counts cycles, ``levels`` the sizes of the levels of a ReadWriteTrace's device, both
    or null.
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

def crash_designs(
    question_json: str,
    start: tuple[int, float],
    machine: str,
    designs: list[str],
    cuts: tuple[int, int],
) -> str:
    """What of the pool reads as something that the program stored, after cuts below each design:
    ``designs``, each ``plain`` and ``marked``, and ``recovered``: of how many cuts the recovery was
    tried, and with how many it copes. ``start`` is a row and a recovery's seconds, ``cuts`` how
    many and after one in how many the recovery is run.
    """

def crash_orders(question_json: str, from_row: int, most: int) -> list[str]:
    """Names of other orders of the recording's threads, for ``Question.thread_order``."""

def crash_lint(recording: str, pools: list[str], source: bool, folder: str | None) -> str:
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

def trace_record(wanted_json: str, recording: Recording) -> str:
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

def crash_memory(question_json: str) -> int:
    """Bytes of memory that the run of a ``CrashQuestion`` needs, about."""

def crash_trial_memory(question_json: str) -> int:
    """Bytes of memory that the largest run of a ``TrialQuestion`` needs, about."""

def crash_stages(question_json: str, progress: Progress | None) -> str:
    """What each stage of a transaction has shown, the power cut likewise (SCA Table 1).

    ``stages``: for each ``cuts``, at how many the ``backup_usable`` and the ``data_usable`` are, at
    how many recovery ``takes_backup`` or ``takes_data``, and at how many it has ``recovered``.
    """

def programs() -> str:
    """``programs`` (``name``, ``line``), ``mutants`` and ``equivalent_mutants`` (``name``,
    ``meaning``)."""

def parse_size(text: str) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``; ``ValueError`` says what to give."""

def questions() -> str:
    """What these functions are asked (``sardonyx.questions``), as JSON schemas by name."""

def store_designs() -> str:
    """Every store design (``runs.stores.Design``); the first is a device's by default."""

def store_keys(design_json: str) -> str:
    """All keys of a ``runs.stores.StoreDesign`` with their values, as pairs."""

def store_plan(question_json: str) -> str:
    """What is known before a ``cli.store.estimate.Question`` is read: ``bytes`` (null of a stream),
    ``files``, ``memory_bytes`` at most, and whether the counts will be ``exact`` in any case.
    """

def store_estimate(question_json: str, scratch: str, progress: Progress | None) -> str:
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

def merge_available() -> None:
    """An error unless the running kernel's KSM is there, unused, and may be driven."""

def merge_validate(seed: int, mixes: int, progress: Progress | None) -> str:
    """The running kernel beside the model: ``kernel``, ``values``, ``mismatches``, ``mixes``."""

def parquet_of(
    columns: list[tuple[str, list[str] | list[float | None]]], whole: list[str]
) -> bytes:
    """The Parquet file with these columns; those named in ``whole`` are whole numbers."""
