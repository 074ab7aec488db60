"""The native module: the simulator behind functions that take plain values and give JSON text.

Every function that computes releases the interpreter's lock. Errors are ``SardonyxError`` with
the place and the remedy.
"""

VERSION: str

class SardonyxError(Exception):
    """Bad input: the message has the place and the remedy."""

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

def simulate(
    trace: str,
    design: str,
    machine: str,
    overrides: list[tuple[str, str]],
    limit: int | None,
    warmup: int,
    copies: int,
    distinct: bool,
    progress: Progress | None,
) -> str:
    """One run: ``trace``, ``design``, ``machine``, ``copies``, ``variant``, ``metrics``,
    ``causes``, ``write_latency_cdf``, ``read_latency_cdf``, ``assumed``.

    ``trace`` is a path, ``synth:NAME[:RECORDS[:SEED]]`` for a rung of the locality ladder, or
    ``program:NAME:ITEM_BYTES:FOOTPRINT:TRANSACTIONS:SEED`` for a program on ``copies`` cores.
    """

def check_program(source: str, machine: str, overrides: list[tuple[str, str]], cores: int) -> None:
    """An error unless the program of ``source`` fits on so many cores of the machine."""

def trace_info(trace: str, limit: int | None, progress: Progress | None) -> str:
    """What is in a trace: numbers, ``locality`` and ``collisions``."""

def trace_check(path: str, max_problems: int, progress: Progress | None) -> str:
    """``records``, ``bad`` and ``problems`` (``row``, ``problem``), as many as asked for."""

def trace_convert(
    src: str,
    dst: str,
    from_format: str,
    to_format: str,
    data: str,
    seed: int,
    clock_mhz: float | None,
    levels: list[int] | None,
    progress: Progress | None,
) -> str:
    """``records`` written; ``data`` fills writes without bytes: zero, random or unique, made of
    ``seed``. ``clock_mhz`` is the clock of a trace that counts cycles, ``levels`` the sizes of the
    levels of a ReadWriteTrace's device.
    """

def trace_synth(spec_json: str, dst: str, seed: int, progress: Progress | None) -> str:
    """``records`` written to the generated trace."""

def trace_cut(src: str, dst: str, skip: int, limit: int | None, progress: Progress | None) -> str:
    """``records`` written to the stretch."""

def trace_mix(sources: list[str], dst: str, progress: Progress | None) -> str:
    """``records`` written to the mixed trace."""

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

def designs() -> str:
    """``name``, ``source`` and ``line`` of every design."""

def crash(
    program: str,
    design: str,
    machine: str,
    overrides: list[tuple[str, str]],
    cores: int,
    transactions: int,
    item_bytes: int,
    footprint: int,
    mutant: str | None,
    seed: int,
    platform: str,
    cuts: int | None,
    cut: int | None,
    recovery_cuts: int,
    full_one_in: int,
    threads: int,
    progress: Progress | None,
) -> str:
    """What cutting the power of one run shows: counts, ``fails`` and ``violations``.

    Every position is cut, or ``cuts`` of them, or the one at ``cut``. Progress counts cuts.
    """

def crash_stages(
    program: str,
    design: str,
    machine: str,
    overrides: list[tuple[str, str]],
    cores: int,
    transactions: int,
    item_bytes: int,
    footprint: int,
    mutant: str | None,
    seed: int,
    platform: str,
    progress: Progress | None,
) -> str:
    """What each stage of a transaction has shown, the power cut everywhere (SCA Table 1).

    ``stages``: for each ``cuts``, at how many the ``backup_usable`` and the ``data_usable`` are, at
    how many recovery ``takes_backup`` or ``takes_data``, and at how many it has ``recovered``.
    """

def programs() -> str:
    """``programs`` (``name``, ``line``), ``mutants`` and ``equivalent_mutants`` (``name``,
    ``meaning``)."""

def guarantee(design: str) -> str:
    """What a design, or ``MAPPING+POLICY``, promises of the lines that a power cut leaves."""
