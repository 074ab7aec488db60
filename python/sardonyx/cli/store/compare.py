"""``sardonyx store compare``: the resistive CAM and its rival on one stream of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    MOST,
    check_json_target,
    err,
    for_people,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.help import rare
from sardonyx.cli.options import JsonTo, Workers
from sardonyx.cli.progress import Watcher
from sardonyx.draw.grid import numbers
from sardonyx.questions import BlockTrace, Stream, Tree, Workload
from sardonyx.runs import stores
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sources import parts
from sardonyx.runs.stores import Design, Key, StoreDesign, StorePoint, StoreQuestion, StoreRuns


@dataclass(frozen=True, kw_only=True)
class OfWorkload(Options):
    """What is written, and to which designs."""

    designs: Annotated[
        str, typer.Option("--designs", "-d", help="Designs, separated by commas.")
    ] = ",".join(stores.designs())
    block: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of a block: the paper's are 1K to 8K.")
    ] = "4K"
    duplicates: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of writes whose content was written before; default: 0.3, and of --trace "
            "what its digests say.",
        ),
    ] = None
    volume: Annotated[
        str, typer.Option("--bytes", metavar="BYTES", help="What the stream writes, as in 50G.")
    ] = "2G"
    written: Annotated[
        str,
        typer.Option(metavar="BYTES", help="The most that an executed store really writes of it."),
    ] = "2G"
    reads: Annotated[
        float, typer.Option(min=0, max=1, help="Share of operations that are reads, as in 0.7.")
    ] = 0.0
    encrypted: Annotated[
        bool, typer.Option("--encrypted", help="Encrypt each write before the store gets it.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of the stream.")] = 0
    tree: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Write the files below this directory instead."),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Replay a block trace instead: FIU's with digests; MSR's or fio's, with "
            "--duplicates.",
        ),
    ] = None


def _option(design: Design, key: Key) -> tuple[str, Any, Any]:
    """A key's option as a field: its name, its type with Typer's settings, its default."""
    default: Any = key.default
    metavar = key.metavar
    kind: type = str
    if key.kind == "count":
        kind, default = int, int(key.default or 0)
    elif key.kind == "flag":
        kind, default = bool, key.default == "true"
    elif key.kind == "choice":
        kind, default = bool, False
    else:
        metavar = metavar or {"bytes": "BYTES", "bracket": "A-B"}[key.kind]
    least = 0 if kind is int else None
    told = typer.Option(key.option, metavar=metavar, min=least, help=f"{design.name}: {key.line}")
    return _field(design, key), Annotated[kind, told], default


def _field(design: Design, key: Key) -> str:
    return f"{design.name}_{key.name}"


if TYPE_CHECKING:
    OfKeys = OfWorkload
else:  # the table of designs says which keys have options
    OfKeys = make_dataclass(
        "OfKeys",
        [
            _option(design, key)
            for design in stores.designs().values()
            for key in design.keys
            if key.option
        ],
        bases=(OfWorkload,),
        frozen=True,
        kw_only=True,
    )


#: The suffix of figures of one operation's energy.
SPENT = "_energy_nj"


@dataclass(frozen=True, kw_only=True)
class Compare(OfKeys):
    """The options of ``sardonyx store compare``."""

    directory: Annotated[
        str | None,
        typer.Option("--dir", help="Folder for the temporary files of an executed store."),
    ] = None
    workers: Workers = None
    json_to: JsonTo = None


#: Options of keys that no source gives.
ASSUMED = tuple(
    _field(design, key)
    for design in stores.designs().values()
    for key in design.keys
    if key.option and "assumed" in key.source
)


@rare(*ASSUMED)
def compare(asked: Compare) -> None:
    """Compare deduplicating stores: the resistive CAM simulated, the conventional one executed.

    [bold]Examples[/bold]

    sardonyx store compare --block 8K --bytes 50G

    sardonyx store compare --designs recam --bytes 50G --single --json -

    sardonyx store compare --tree docs --designs recam,conventional
    """
    chosen = _designs(asked.designs)
    block_bytes = size_in_bytes("--block", asked.block, 64, 1 << 20)
    name, workload, form = _workload(asked, block_bytes)
    directory = None
    points = []
    for design in chosen:
        own = workload
        if design.executed:
            directory = asked.directory
            if isinstance(own, Stream):
                most = size_in_bytes("--written", asked.written, block_bytes, 1 << 46)
                own = own.replace(bytes=min(own.bytes, most))
        question = StoreQuestion(
            design=_keyed(asked, design, own), workload=own, block_bytes=block_bytes
        )
        points.append(StorePoint(name, question))
    runs = StoreRuns(points, directory)
    runs.check()
    read = [workload.path] if isinstance(workload, BlockTrace) else []
    check_json_target(asked.json_to, read)
    workers, json_to = asked.workers, asked.json_to
    asked.refuse_idle(f"with --designs {','.join(each.name for each in chosen)}{form}")
    with Watcher(err) as watch:
        results = runs.run(workers, watch)
    people = for_people(json_to)
    people.print(_table(results))
    for line in _energies(results) + _lives(results):
        people.print(Text(line))
    people.print(Text(_note(results, chosen), style="dim"))
    write_json(json_to, results.to_document())


def _workload(asked: Compare, block_bytes: int) -> tuple[str, Workload, str]:
    """The workload, as results name it, and the option that sets it."""
    if asked.tree is not None:
        return asked.tree, Tree(path=asked.tree), f" and --tree {asked.tree}"
    if asked.trace is not None:
        # The seed chooses duplicates if contents are assumed.
        share = asked.duplicates
        seed = 0 if share is None else asked.seed
        trace = BlockTrace(path=asked.trace, duplicates=share, seed=seed)
        assumed = "" if share is None else f", {share:.0%} duplicates assumed"
        return f"{asked.trace}{assumed}", trace, f" and --trace {asked.trace}"
    share = 0.3 if asked.duplicates is None else asked.duplicates
    stream = Stream(
        bytes=size_in_bytes("--bytes", asked.volume, block_bytes, 1 << 46),
        duplicates=share,
        reads=asked.reads,
        seed=asked.seed,
        encrypted=asked.encrypted,
    )
    return f"{share:.0%} duplicates", stream, ""


def _keyed(asked: Compare, design: Design, workload: Workload) -> StoreDesign:
    """The design with its keys as their options have them; keys without an effect are not read."""
    given: dict[str, str] = {}
    for key in design.keys:
        if key.option is None or not _does_something(key, given, workload):
            continue
        value = getattr(asked, _field(design, key))
        if key.kind == "choice":
            text = key.words[-1] if value else key.default
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
        if text != key.default:
            given[key.name] = str(text)
            option = key.option.partition("/")[0]
            try:
                StoreDesign(name=design.name, keys=((key.name, str(text)),)).values()
            except _core.SardonyxError as error:
                named = f"{design.name}.{key.name} = {text}: "
                raise _core.SardonyxError(
                    f"{option} {text}: {str(error).removeprefix(named)}"
                ) from error
    return StoreDesign(name=design.name, keys=tuple(given.items()))


def _does_something(key: Key, given: Mapping[str, str], workload: Workload) -> bool:
    if key.needs == "files":
        return isinstance(workload, Tree)
    return key.needs is None or given.get(key.needs["flag"], "true") == "true"


def _designs(text: str) -> list[Design]:
    names = parts(text)
    found = {name: stores.known(name, "--designs: ") for name in names}
    if not found:
        every = ", ".join(stores.designs())
        raise _core.SardonyxError(f"--designs: none given; they are {every}")
    return list(found.values())


def _table(results: Results) -> Table:
    heads = ("bytes", "writes", "duplicates", "writes/s", "operations/s", "energy")
    table = Table("design", *numbers(*heads), box=None)
    for run in results.runs:
        table.add_row(
            run.design,
            _bytes(run.metric("bytes") or 0),
            f"{run.metric('writes') or 0:,.0f}",
            f"{run.metric('duplicate_writes') or 0:,.0f}",
            _rate(run.metric("writes_per_second")),
            _rate(run.metric("operations_per_second")),
            energy(run),
        )
    return table


def energy(run: Run) -> str:
    """Joules between the ends of the bracket."""
    low, high = (run.metric(f"energy_nj_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return "–"
    ends = [f"{nj / 1e9:,.3g}" for nj in (low, high)]
    return f"{ends[0]} J" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} J"


def _energies(results: Results) -> list[str]:
    """The parts of each store's energy, in the middle of the brackets, the largest first."""
    told = []
    for run in results.runs:
        by = {
            name.removesuffix(SPENT): value
            for name, value in run.metrics.items()
            if name.endswith(SPENT) and value
        }
        if not by:
            continue
        most = sorted(by.items(), key=lambda each: -each[1])
        parts = [f"{name} {nj / 1e9:,.3g} J ({nj / sum(by.values()):.1%})" for name, nj in most]
        told.append(f"{run.design}: energy by operation: {', '.join(parts)}.")
    return told


def _bytes(number: float) -> str:
    for size, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if number >= size:
            return f"{number / size:.4g}{letter}"
    return f"{number:.0f}"


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return "–"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if per_second >= size:
            return f"{per_second / size:.2f} {letter}"
    return f"{per_second:.0f}"


def _lives(results: Results) -> list[str]:
    """The life of each store, if it worked like this day and night."""
    told = []
    for run in results.runs:
        low, high, least, most, years = (
            run.metric(f"years{end}")
            for end in ("_low", "_high", "_levelled_low", "_levelled_high", "")
        )
        if low is not None and high is not None and least is not None and most is not None:
            told.append(
                f"{run.design}: its most written row lasts {low:.3g} to {high:.3g} years at this "
                f"rate; were all rows written alike, {least:.3g} to {most:.3g}."
            )
        elif years is not None:
            told.append(f"{run.design}: its drive lasts {years:.3g} years at this rate.")
    return told


def _note(results: Results, chosen: Sequence[Design]) -> str:
    assumed = ", ".join(f"{a.parameter} = {a.value}" for a in results.machine.assumed)
    words = [design.line for design in chosen]
    words.append(f"Energies and what else is assumed: {assumed}.")
    return " ".join(words)
