"""``trace convert``: another simulator's trace as ours, or ours as another's."""

from __future__ import annotations

from sardonyx import _core
from sardonyx.answer import Answer
from sardonyx.api.asked import TraceConvert
from sardonyx.api.command import ran
from sardonyx.questions import Conversion
from sardonyx.runs.recordings import path_of
from sardonyx.runs.scheduler import Watch
from sardonyx.runs.sources import check_file, check_known
from sardonyx.tracing.facts import check_new
from sardonyx.tracing.facts import tell as tell

OWN_FORMAT = "sardonyx"
FORMATS = (
    OWN_FORMAT,
    "nvmain",
    "ramulator-load-store",
    "ramulator-read-write",
    "ramulator-instructions",
    "ramulator-memory",
    "dramsim2",
    "dramsim3",
    "dramsys",
    "dramsys-relative",
    "champsim",
    "gem5-packets",
    "pinatrace",
    "lackey",
    "dynamorio",
)
#: Formats that our traces can be converted to.
WRITTEN = (OWN_FORMAT, "nvmain", "ramulator-load-store", "dramsim3", "champsim")
FILLS = ("zero", "random", "unique")
#: Formats that count cycles, and the format whose addresses are positions in a device.
CLOCKED = ("nvmain", "dramsim2", "dramsim3", "dramsys", "dramsys-relative", "gem5-packets")
LEVELLED = "ramulator-read-write"


def answer(asked: TraceConvert, watch: Watch | None) -> Answer:
    """What is in the new trace."""
    source, target = path_of(asked.source), str(asked.target)
    check_file(source)
    check_new(asked.target, [source])
    read = _format("--from", asked.from_format, source)
    write = _format("--to", asked.to_format, target)
    _check_idle(asked, read)
    check_known("filling", asked.data, FILLS, "--data: ")
    conversion = Conversion(
        source=source,
        target=target,
        from_format=read,
        to_format=write,
        data=asked.data,
        seed=asked.seed,
        clock_mhz=asked.clock_mhz,
        levels=None if asked.levels is None else _levels(asked.levels),
    )
    found = ran(source, lambda progress: _core.trace_convert(conversion.json(), progress), watch)
    return Answer("trace convert", found, shown=target)


def _check_idle(asked: TraceConvert, read: str) -> None:
    """An error if an option does nothing for a trace of this format."""
    ours = f"from {read}: contents are made for traces of other simulators"
    idle = {
        "--data": (asked.data != "unique" and read == OWN_FORMAT, ours),
        "--seed": (asked.seed and read == OWN_FORMAT, ours),
        "--clock-mhz": (
            asked.clock_mhz is not None and read not in CLOCKED,
            f"from {read}, which counts no cycles; {' and '.join(CLOCKED)} do",
        ),
        "--levels": (
            asked.levels is not None and read != LEVELLED,
            f"from {read}: only {LEVELLED} has levels",
        ),
    }
    if asked.seed and asked.data == "zero":
        idle["--seed"] = (True, "with --data zero")
    for option, (given, why) in idle.items():
        if given:
            raise _core.SardonyxError(f"{option}: does nothing {why}; leave it out")


def _levels(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 6 or not all(part.isascii() and part.isdigit() for part in parts):
        raise _core.SardonyxError(
            f"--levels {text}: give six whole numbers, as in 1,2,4,4,65536,128"
        )
    if any(len(part) > 18 for part in parts):
        raise _core.SardonyxError(f"--levels {text}: together at most 2^58 lines")
    return tuple(int(part) for part in parts)


def _format(option: str, given: str | None, path: str) -> str:
    known = ", ".join(FORMATS)
    if given is None:
        if path.endswith(".parquet"):
            return OWN_FORMAT
        raise _core.SardonyxError(f"{path}: of which format? give {option}, one of {known}")
    check_known("trace format", given, FORMATS, f"{option}: ")
    return given
