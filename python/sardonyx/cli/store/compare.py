"""``sardonyx store compare``: the resistive CAM and its rival on one stream of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

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
from sardonyx.cli.forms import Options, Work
from sardonyx.cli.options import JsonTo, Workers
from sardonyx.cli.progress import Watcher
from sardonyx.runs import stores
from sardonyx.runs.results import Results, Run
from sardonyx.runs.sources import unknown
from sardonyx.runs.stores import (
    BlockTrace,
    Conventional,
    Energies,
    Recam,
    StorePoint,
    StoreQuestion,
    Stream,
    Tree,
    Workload,
    bracket,
)


@dataclass(frozen=True, kw_only=True)
class Compare(Options):
    """The options of ``sardonyx store compare``."""

    designs: Annotated[
        str, typer.Option("--designs", "-d", help="Designs, separated by commas.")
    ] = ",".join(stores.DESIGNS)
    block: Annotated[
        str, typer.Option(metavar="BYTES", help="Size of a block: the paper's are 1K to 8K.")
    ] = "4K"
    duplicates: Annotated[
        float, typer.Option(help="Share of writes whose content was written before.")
    ] = 0.3
    volume: Annotated[
        str, typer.Option("--bytes", metavar="BYTES", help="What the stream writes, as in 50G.")
    ] = "2G"
    written: Annotated[
        str,
        typer.Option(
            metavar="BYTES", help="What the conventional store really writes of it, at most."
        ),
    ] = "2G"
    reads: Annotated[float, typer.Option(help="Share of operations that are reads, as in 0.7.")] = (
        0.0
    )
    encrypted: Annotated[
        bool, typer.Option("--encrypted", help="Each write is encrypted before it comes.")
    ] = False
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Seed of the stream.")] = 0
    tree: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Write the files below this directory instead."),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Replay a block trace with digests (FIU's) instead."),
    ] = None
    capacity: Annotated[
        str, typer.Option(metavar="BYTES", help="recam: bytes of data in the array.")
    ] = "256G"
    width: Annotated[int, typer.Option(help="recam: data bits of a row.")] = 256
    modules: Annotated[int, typer.Option(help="recam: modules that work in parallel.")] = 1
    single: Annotated[
        bool, typer.Option("--single", help="recam: no compare deactivates a row.")
    ] = False
    starts: Annotated[
        bool,
        typer.Option("--starts", help="recam: the first compare activates block starts alone."),
    ] = False
    free_row: Annotated[
        bool, typer.Option("--free-row", help="recam: a write compares for an empty row first.")
    ] = False
    fingerprint: Annotated[
        int, typer.Option(metavar="BITS", help="recam: a row with so many bits of a hash first.")
    ] = 0
    compared_bit: Annotated[
        str, typer.Option(metavar="FJ", help="recam: femtojoules of a bit compared, or A-B.")
    ] = "0.1-17"
    match_line: Annotated[
        str, typer.Option(metavar="FJ", help="recam: femtojoules of a match line, or A-B.")
    ] = "0"
    written_bit: Annotated[
        str, typer.Option(metavar="FJ", help="recam: femtojoules of a bit written, or A-B.")
    ] = "1000-10000"
    deduplicate: Annotated[
        bool, typer.Option(help="conventional: find duplicates; without, store all.")
    ] = True
    verify: Annotated[
        bool, typer.Option(help="conventional: compare bytes before believing a hash.")
    ] = True
    by_content: Annotated[
        bool, typer.Option("--by-content", help="conventional: cut the tree's files by content.")
    ] = False
    directory: Annotated[
        str | None,
        typer.Option("--dir", help="conventional: where its files are for a while."),
    ] = None
    workers: Workers = None
    json_to: JsonTo = None


def compare(asked: Compare) -> Work:
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
        if design == "recam":
            question = StoreQuestion(
                design=_recam(asked, block_bytes), workload=workload, block_bytes=block_bytes
            )
        else:
            directory = asked.directory
            own = workload
            if isinstance(own, Stream):
                most = size_in_bytes("--written", asked.written, block_bytes, 1 << 46)
                own = own.model_copy(update={"bytes": min(own.bytes, most)})
            question = StoreQuestion(
                design=_conventional(asked, own), workload=own, block_bytes=block_bytes
            )
        points.append(StorePoint(name, question))
    stores.check(points, directory)
    check_json_target(asked.json_to, [name] if isinstance(workload, BlockTrace) else [])
    run = partial(_run, points, chosen, asked.workers, directory, asked.json_to)
    return Work(run, f"with --designs {','.join(chosen)}{form}")


def _run(
    points: Sequence[StorePoint],
    chosen: Sequence[str],
    workers: int | None,
    directory: str | None,
    json_to: str | None,
) -> None:
    with Watcher(err) as watch:
        results = stores.run(points, workers, watch, directory)
    people = for_people(json_to)
    people.print(_table(results))
    people.print(Text(_note(results, chosen), style="dim"))
    write_json(json_to, results.to_document())


def _workload(asked: Compare, block_bytes: int) -> tuple[str, Workload, str]:
    """What is written, as results name it, and the option that says so."""
    if asked.tree is not None:
        return asked.tree, Tree(path=asked.tree), f" and --tree {asked.tree}"
    if asked.trace is not None:
        return asked.trace, BlockTrace(path=asked.trace), f" and --trace {asked.trace}"
    stream = Stream(
        bytes=size_in_bytes("--bytes", asked.volume, block_bytes, 1 << 46),
        duplicates=asked.duplicates,
        reads=asked.reads,
        seed=asked.seed,
        encrypted=asked.encrypted,
    )
    return f"{asked.duplicates:.0%} duplicates", stream, ""


def _recam(asked: Compare, block_bytes: int) -> Recam:
    bits = asked.fingerprint
    return Recam(
        capacity_bytes=size_in_bytes("--capacity", asked.capacity, block_bytes),
        row_bits=_at_least_one("--width", asked.width),
        modules=_at_least_one("--modules", asked.modules),
        compare="single" if asked.single else "continuous",
        first="starts" if asked.starts else "rows",
        free_row_compare=asked.free_row,
        fingerprint_bits=bits if bits >= 0 else _at_least_one("--fingerprint", -1),
        energies=Energies(
            compared_bit_fj=bracket("--compared-bit", asked.compared_bit),
            match_line_fj=bracket("--match-line", asked.match_line),
            written_bit_fj=bracket("--written-bit", asked.written_bit),
        ),
    )


def _conventional(asked: Compare, workload: Workload) -> Conventional:
    return Conventional(
        deduplicate=asked.deduplicate,
        verify=asked.verify if asked.deduplicate else True,
        by_content=asked.by_content if isinstance(workload, Tree) else False,
    )


def _designs(text: str) -> list[Literal["recam", "conventional"]]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in stores.DESIGNS:
            raise _core.SardonyxError(f"--designs: {unknown('store', name, stores.DESIGNS)}")
    if not names:
        raise _core.SardonyxError(f"--designs: none given; they are {', '.join(stores.DESIGNS)}")
    return ["recam" if name == "recam" else "conventional" for name in dict.fromkeys(names)]


def _at_least_one(option: str, number: int) -> int:
    if not 1 <= number < 1 << 32:
        raise _core.SardonyxError(f"{option} {number}: give a whole number of at least 1")
    return number


def _table(results: Results) -> Table:
    table = Table(box=None)
    for heading in ("design", "bytes", "writes", "duplicates", "writes/s", "operations/s"):
        table.add_column(heading, justify="left" if heading == "design" else "right")
    table.add_column("energy", justify="right")
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


def _note(results: Results, chosen: Sequence[str]) -> str:
    assumed = ", ".join(f"{a.parameter} = {a.value}" for a in results.machine.assumed)
    words = []
    if "recam" in chosen:
        words.append("recam is simulated, by Sec. III-C's cycles at 1 GHz.")
    if "conventional" in chosen:
        words.append("conventional is executed here; its time is measured and does not repeat.")
    words.append(f"Energies and what else is assumed: {assumed}.")
    return " ".join(words)
