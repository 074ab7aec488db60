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

    ``trace`` is a path or ``synth:NAME[:RECORDS[:SEED]]`` for a rung of the locality ladder.
    """

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
    progress: Progress | None,
) -> str:
    """``records`` written; ``data`` fills writes without bytes: zero, random or unique."""

def trace_synth(spec_json: str, dst: str, seed: int, progress: Progress | None) -> str:
    """``records`` written to the generated trace."""

def trace_cut(src: str, dst: str, skip: int, limit: int | None) -> str:
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
