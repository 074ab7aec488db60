"""What a deduplicating store is asked, as one JSON document, and its runs as results.

The document is read by ``crates/stores/store/src/compare.rs``.

The resistive CAM is simulated, so runs of it go on at once. The conventional store is executed and
its time measured, so its runs go one after the other, alone, each in a folder that vanishes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError

from sardonyx import _core
from sardonyx.runs import scheduler
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import Value, unknown

KB, GB = 1 << 10, 1 << 30
DESIGNS = ("recam", "conventional")


class Stream(Value):
    """Generated writes, a set share of them duplicates, and reads of what was written.

    ``span`` bytes of logical blocks are written again and again; 0 for each once.
    """

    kind: Literal["stream"] = "stream"
    bytes: int
    span: int = 0
    duplicates: float = 0.3
    reads: float = 0.0
    seed: int = 0
    encrypted: bool = False


class Tree(Value):
    """The files below a directory."""

    kind: Literal["tree"] = "tree"
    path: str


class BlockTrace(Value):
    """A recorded block trace with an MD5 of each 4096 bytes, in FIU's format."""

    kind: Literal["trace"] = "trace"
    path: str


Workload: TypeAlias = Annotated[Stream | Tree | BlockTrace, Field(discriminator="kind")]


class Bracket(Value):
    """A value that no source gives exactly."""

    low: float
    high: float

    @property
    def text(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"


class Energies(Value):
    """Of the array's events, in femtojoules; ``PARAMETERS`` says where the brackets come from."""

    compared_bit_fj: Bracket = Bracket(low=0.1, high=17)
    match_line_fj: Bracket = Bracket(low=0, high=0)
    written_bit_fj: Bracket = Bracket(low=1_000, high=10_000)


class Recam(Value):
    """The resistive CAM; ``address_cycles`` of ``None`` goes by the width of a row."""

    name: Literal["recam"] = "recam"
    capacity_bytes: int = 256 * GB
    row_bits: int = 256
    modules: int = 1
    compare: Literal["continuous", "single"] = "continuous"
    first: Literal["rows", "starts"] = "rows"
    free_row_compare: bool = False
    address_cycles: int | None = None
    fingerprint_bits: int = 0
    energies: Energies = Energies()


class Conventional(Value):
    """The conventional store in a folder; without one, in one of its own."""

    name: Literal["conventional"] = "conventional"
    folder: str = ""
    deduplicate: bool = True
    verify: bool = True
    by_content: bool = False


class StoreQuestion(Value):
    """A design on a workload, in blocks of this size."""

    design: Annotated[Recam | Conventional, Field(discriminator="name")]
    workload: Workload
    block_bytes: int = 4 * KB


def overridden(design: Recam, settings: Sequence[tuple[str, str]]) -> Recam:
    """The array with keys set as the command line has them: ``recam.row_bits=512``, or an energy
    ``recam.compared_bit_fj=0.1-17``.
    """
    fields = [name for name in Recam.model_fields if name not in ("name", "energies")]
    known = {f"recam.{name}": name for name in (*fields, *Energies.model_fields)}
    document = design.model_dump()
    for key, text in settings:
        if key not in known:
            raise _core.SardonyxError(f"--set {key}: {unknown('key', key, list(known))}")
        name = known[key]
        if name in Energies.model_fields:
            document["energies"][name] = bracket(f"--set {key}", text).model_dump()
        else:
            document[name] = text
    try:
        return Recam.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place, problem = first["loc"][-1], first["msg"]
        raise _core.SardonyxError(f"--set recam.{place}={first['input']}: {problem}") from error


def bracket(option: str, text: str) -> Bracket:
    """Femtojoules, or two ends as in ``0.1-17``."""
    low, _, high = text.partition("-")
    try:
        return Bracket(low=float(low), high=float(high or low))
    except ValueError as error:
        raise _core.SardonyxError(
            f"{option} {text}: give femtojoules, or two ends as in 0.1-17"
        ) from error


@dataclass(frozen=True, slots=True)
class StorePoint:
    """A run as results name it; ``variant`` is what tells it from the plain run of its design."""

    trace: str
    question: StoreQuestion
    variant: Mapping[str, Scalar] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The run in a few words."""
        settings = " ".join(f"{key}={value}" for key, value in self.variant.items())
        return " ".join(filter(None, (self.trace, self.question.design.name, settings)))


#: What no source gives, by the design that it concerns: name, value and why it is so.
ASSUMED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "recam": (
        (
            "recam.compared_bit_fj",
            "0.1 to 17",
            "published CAM cells, a bit and search; the paper prints no energy. `energy_nj` takes "
            "the bracket's geometric middle",
        ),
        ("recam.match_line_fj", "0", "the published figures of a bit contain its match line"),
        ("recam.written_bit_fj", "1000 to 10000", "1 to 10 pJ a bit of resistive memory"),
        (
            "recam.address_cycles",
            "2 below 512-bit rows, else 1",
            "Sec. III-C: 1-2 cycles for each of LBA and PA, depending on the width",
        ),
        (
            "recam.first",
            "rows",
            "a search's first compare precharges every row; the paper may mean block starts alone",
        ),
    ),
    "conventional": (
        (
            "conventional.processor_w",
            "16.25 to 520",
            "from a core's share of an E5-4650's 130 W to four packages",
        ),
        ("conventional.memory_w", "3 to 24", "from one memory module to eight"),
        ("conventional.drive_nj_per_byte", "13.2 written, 4.3 read", "an 800 GB P3700's watts"),
        ("conventional.cache_entries", "262144", "the paper gives no cache for 2 GB of data"),
    ),
}


def free_space(folder: str | None) -> int:
    """Bytes that fit where the conventional store will be."""
    return shutil.disk_usage(folder or tempfile.gettempdir()).free


@dataclass(frozen=True, slots=True)
class StoreRuns:
    """Points to run, the conventional store's files below ``folder``."""

    points: Sequence[StorePoint]
    folder: str | None = None

    def check(self) -> None:
        check(self.points, self.folder)

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        return run(self.points, workers, watch, self.folder)


def check(points: Sequence[StorePoint], folder: str | None = None) -> None:
    """An error unless each question can be answered and the largest rival's files fit."""
    if folder is not None and not Path(folder).is_dir():
        raise _core.SardonyxError(f"{folder}: there is no such directory; make it first")
    most = 0
    for point in points:
        _core.check_store(point.question.model_dump_json())
        workload = point.question.workload
        if isinstance(point.question.design, Conventional) and isinstance(workload, Stream):
            most = max(most, workload.bytes)
    if most and (free := free_space(folder)) < 1.2 * most:
        raise _core.SardonyxError(
            f"{folder or tempfile.gettempdir()}: {free / GB:.1f} GB are free, but the conventional "
            f"store writes {most / GB:.1f} GB; give --written, or --dir for another disk"
        )


def run(
    points: Sequence[StorePoint],
    workers: int | None = None,
    watch: Watch | None = None,
    folder: str | None = None,
) -> Results:
    """Run the points, in their order in the results."""
    simulated = [p for p in points if isinstance(p.question.design, Recam)]
    executed = [p for p in points if not isinstance(p.question.design, Recam)]
    answers: dict[int, dict[str, Any]] = {}
    for some, at_once in ((simulated, workers), (executed, 1)):
        tasks = [Task(point.label, partial(answer, point.question, folder)) for point in some]
        for point, found in zip(some, scheduler.run(tasks, at_once, watch), strict=True):
            answers[id(point)] = found
    designs = dict.fromkeys(point.question.design.name for point in points)
    traces = {point.trace: point.question for point in points}
    return Results.from_document(
        {
            "sardonyx": _core.VERSION,
            "machine": {
                "name": "recam",
                "source": "Kaplan et al., Deduplication in Resistive CAM Based SSD, Sec. IV",
                "parameters": _parameters(points),
                "assumed": [
                    {"parameter": name, "value": value, "why": why}
                    for design in designs
                    for name, value, why in ASSUMED[design]
                ],
            },
            "traces": [
                {"name": name, "info": _info(question)} for name, question in traces.items()
            ],
            "runs": [
                answers[id(point)]
                | {
                    "trace": point.trace,
                    "variant": dict(point.variant),
                    "assumed": [name for name, _, _ in ASSUMED[point.question.design.name]],
                }
                for point in points
            ],
        }
    )


def answer(question: StoreQuestion, folder: str | None, progress: _core.Progress | None) -> Any:
    """What a store shows on a workload; the executed one works in a folder that vanishes."""
    if isinstance(question.design, Recam):
        return json.loads(_core.store(question.model_dump_json(), progress))
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=folder) as name:
        placed = question.design.model_copy(update={"folder": name})
        placed_question = question.model_copy(update={"design": placed})
        return json.loads(_core.store(placed_question.model_dump_json(), progress))


def _parameters(points: Sequence[StorePoint]) -> dict[str, Any]:
    """The array's, of the first point that has one and is plain."""
    plain = sorted(points, key=lambda point: len(point.variant))
    for point in plain:
        if isinstance(design := point.question.design, Recam):
            whole = design.model_dump(exclude={"name", "energies", "address_cycles"})
            energies = {name: getattr(design.energies, name).text for name in Energies.model_fields}
            return {f"recam.{key}": value for key, value in (whole | energies).items()}
    return {}


def _info(question: StoreQuestion) -> dict[str, Any]:
    workload = question.workload.model_dump()
    facts = {f"workload_{key}" if key == "bytes" else key: v for key, v in workload.items()}
    if isinstance(question.workload, Stream):
        facts["duplicate_rate"] = facts.pop("duplicates")
    return {"block_bytes": question.block_bytes} | facts
