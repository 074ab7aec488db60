"""The native module: the simulator behind functions that take plain values and give JSON text.

Every function that computes releases the interpreter's lock. Errors are ``SardonyxError`` with
the place and the remedy. The shapes of the JSON stand in docs/interfaces.md.
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
) -> str: ...
def trace_info(trace: str, limit: int | None, progress: Progress | None) -> str: ...
def trace_check(path: str, max_problems: int, progress: Progress | None) -> str: ...
def trace_convert(
    src: str,
    dst: str,
    from_format: str,
    to_format: str,
    data: str,
    progress: Progress | None,
) -> str: ...
def trace_synth(spec_json: str, dst: str, seed: int, progress: Progress | None) -> str: ...
def trace_cut(src: str, dst: str, skip: int, limit: int | None) -> str: ...
def ladder() -> str: ...
def machines() -> str: ...
def machine(name_or_path: str, overrides: list[tuple[str, str]]) -> str: ...
def designs() -> str: ...
