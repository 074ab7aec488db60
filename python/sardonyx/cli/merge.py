"""``sardonyx merge``: what same-page merging would save on real page images, and why not more.

``sardonyx merge time`` says what merging costs (``merge_time``), ``sardonyx merge generate`` makes
images. Left out: everything that computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sardonyx import _core
from sardonyx import report as pages
from sardonyx.cli.common import (
    MOST,
    PATH,
    add_command,
    check_json_target,
    err,
    for_people,
    output_directory,
    size_in_bytes,
    write_json,
)
from sardonyx.cli.forms import Options
from sardonyx.cli.grid import folded, grid, numbers
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.merge_time import in_time
from sardonyx.cli.options import JsonTo
from sardonyx.cli.places import check_replaced
from sardonyx.cli.progress import Watcher
from sardonyx.files import replaced_together
from sardonyx.questions import MergeQuestion, Target
from sardonyx.runs import merging, origin
from sardonyx.runs.advice import headline, told
from sardonyx.runs.jobs import parse_settings
from sardonyx.runs.sources import parts

ALGORITHMS = tuple(merging.algorithms())
PAGE = 4096
MIB = 1 << 20
ZEROS = ("held", "no-holes", "none")


class _MachinesFirst(Group):
    """A word that is no command's name is a machine: ``merge IMAGE..`` is ``merge run IMAGE..``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["run", *(args or ["--help"])]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_MachinesFirst,
    context_settings=CONTEXT,
    help="Merge equal pages of real page images, as the kernel does and as PageForge does.",
    rich_markup_mode="rich",
)


@dataclass(frozen=True, kw_only=True)
class Run(Options):
    """The options of ``sardonyx merge``."""

    machines: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MACHINE..",
            help="Images (raw dumps, ELF cores), or folders of snapshots: the k-th is what pass k "
            "sees, the last one stays.",
        ),
    ] = None
    pid: Annotated[list[int] | None, typer.Option(min=1, help="A live process; repeatable.")] = None
    mapping: Annotated[
        list[str] | None,
        typer.Option(help="Live processes: only mappings whose name contains this; repeatable."),
    ] = None
    snapshots: Annotated[
        int, typer.Option(min=1, max=1000, help="Live processes: the number of snapshots.")
    ] = 2
    every: Annotated[
        float, typer.Option(min=0, max=86400, help="Seconds between two snapshots.")
    ] = 1.0
    designs: Annotated[
        str, typer.Option("--designs", "-d", help=f"{', '.join(ALGORITHMS)}, separated by commas.")
    ] = "ksm"
    kernel: Annotated[
        str,
        typer.Option(
            help="The kernel whose KSM is modelled: linux-6, linux-4.4 or paper; host: "
            "linux-6 with the settings of the running kernel."
        ),
    ] = "linux-6"
    memory: Annotated[
        str,
        typer.Option(
            help="Live processes: memory for copies of their pages. Beyond it pages are "
            "known by digests, and near matches are not looked for."
        ),
    ] = "1G"
    zeros: Annotated[
        str,
        typer.Option(
            help="Images: whether pages of zeros, which may never have been touched, count "
            "as pages. held: yes; no-holes: except holes of the file; none: no."
        ),
    ] = "no-holes"
    pass_in: Annotated[
        int,
        typer.Option(min=1, max=1_000_000, help="Recommend settings for a pass within N seconds."),
    ] = Target.pass_seconds
    at_most: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Recommend settings for at most N % of a core; goes before --pass-in.",
        ),
    ] = Target.core_percent
    passes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Number of passes; default: until the savings stay the same for ten.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "-s", metavar="KEY=VALUE", help="Set a key of the merge; repeatable."
        ),
    ] = None
    owner: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=GLOB",
            help="Machines of one owner, who may merge with each other only; repeatable.",
        ),
    ] = None
    what_if: Annotated[bool, typer.Option(help="Try each knob at another value.")] = True
    why: Annotated[bool, typer.Option(help="Say why pages did not merge.")] = True
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Directory for report.html and merge.json.", **PATH),
    ] = None
    json_to: JsonTo = None


def run(asked: Run) -> None:
    """Say what same-page merging saves on page images, pass by pass, and why not more.

    [bold]Examples[/bold]

    sardonyx merge dumps/vm0.raw dumps/vm1.raw

    sardonyx merge snapshots/web snapshots/db --designs ksm,pageforge --kernel paper --out merged

    sardonyx merge --pid 1234 --pid 1235 --set ksm.use_zero_pages=true
    """
    paths, pids = asked.machines or [], asked.pid or []
    if not paths and not pids:
        raise _core.SardonyxError("no machine: give images, folders of snapshots, or --pid N")
    for path in paths:
        if not Path(path).exists():
            raise _core.SardonyxError(
                f"{path}: there is no such file; name an image, a folder of snapshots, or --pid N"
            )
    live: dict[str, Any] = {"mappings": (), "snapshots": Run.snapshots, "every_ms": 0}
    form = "for images, without --pid"
    if asked.zeros not in ZEROS:
        raise _core.SardonyxError(f"--zeros {asked.zeros}: give one of {', '.join(ZEROS)}")
    if pids:
        form = "with one snapshot"
        live = {"mappings": tuple(asked.mapping or ()), "snapshots": asked.snapshots}
        live["every_ms"] = round(asked.every * 1000) if live["snapshots"] > 1 else 0
        live["memory"] = size_in_bytes("--memory", asked.memory)
    if paths:
        live["zeros"] = asked.zeros
    names = [*paths, *(f"pid {number} ({_command(number)})" for number in pids)]
    question = MergeQuestion(
        machines=(*paths, *pids),
        designs=tuple(dict.fromkeys(parts(asked.designs))),
        kernel="linux-6" if asked.kernel == "host" else asked.kernel,
        passes=asked.passes,
        sets=(*_of_the_host(asked.kernel), *parse_settings(asked.settings or ())),
        target=Target(pass_seconds=asked.pass_in, core_percent=asked.at_most),
        advice=True,
        owners=merging.owned(asked.owner or (), names),
        what_if=asked.what_if,
        why=asked.why,
        **live,
    )
    if not question.designs:
        raise _core.SardonyxError(f"--designs: none given; they are {', '.join(ALGORITHMS)}")
    check_json_target(asked.json_to, [path for path in paths if Path(path).is_file()])
    out_dir, json_to = asked.out_dir, asked.json_to
    asked.refuse_idle(form)
    _run(question, out_dir, json_to)


def _run(question: MergeQuestion, out_dir: Path | None, json_to: str | None) -> None:
    if out_dir is None:
        answer = _asked(question)
    else:
        check_replaced(out_dir, MERGE)
        with output_directory(out_dir):
            answer = _asked(question)
            with replaced_together(out_dir) as scratch:
                write_json(str(scratch / MERGE), answer)
                origin.save(origin.origin(()), scratch)
                pages.write_merge_report(answer, scratch / "report.html")
    people = for_people(json_to)
    _tell(people, answer)
    if out_dir is not None:
        people.print(f"report: {out_dir / 'report.html'}", soft_wrap=True)
    write_json(json_to, answer)


def _asked(question: MergeQuestion) -> dict[str, Any]:
    with Watcher(err, "pages") as watch:
        answer = merging.merge(question, watch)
    if any(isinstance(machine, int) for machine in question.machines):
        answer["host"] = merging.beside_the_host(answer)
    return answer


def _of_the_host(kernel: str) -> tuple[tuple[str, str], ...]:
    if kernel != "host":
        return ()
    if not (knobs := merging.host_knobs()):
        raise _core.SardonyxError(
            f"--kernel host: this kernel has no KSM ({merging.KSM}); name another"
        )
    return knobs


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _size(pages: float) -> str:
    return f"{pages * PAGE / MIB:,.1f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _grid(title: str, *columns: str) -> Table:
    return grid(*folded(columns[0]), *numbers(*columns[1:]), title=title, header_style="dim")


def _cells(metrics: dict[str, Any], columns: Sequence[str]) -> list[str]:
    merges = "cpu_share" in metrics
    settled = metrics.get("settled_after_passes")
    cells = {
        "saved %": f"{100 * metrics['saving']:.1f}",
        "MiB": _size(metrics["saved_pages"]),
        "zeros MiB": _size(metrics["saved_zero_pages"]),
        "passes": "-" if not merges else "not yet" if settled is None else f"{settled}",
        "time": _time(metrics.get("settled_after_seconds")),
        "processor": _time(metrics.get("settled_cpu_seconds")),
        "share %": f"{100 * metrics['cpu_share']:.1f}" if merges else "-",
    }
    return [cells[column] for column in columns]


#: The answer, in a directory of its own.
MERGE = "merge.json"
COLUMNS = ("saved %", "MiB", "zeros MiB", "passes", "time", "processor", "share %")
#: The columns next to the long names of knobs, in a terminal of 80 columns.
KNOB_COLUMNS = ("saved %", "MiB", "time", "processor", "share %")


def _tell(people: Console, answer: dict[str, Any]) -> None:
    for line in headline(answer):
        people.print(Text(line))
    people.print()
    pages = answer["runs"][0]["metrics"]["pages"]["pages"] if answer["runs"] else 0
    table = _grid(
        f"{len(answer['machines'])} machine(s), {pages:,} pages, {_size(pages)} MiB, "
        f"{answer['snapshots']} snapshot(s), {answer['kernel']}",
        "design",
        *COLUMNS,
    )
    for done in answer["runs"]:
        table.add_row(done["design"], *_cells(done["metrics"], COLUMNS))
    people.print(table)
    people.print(Text("passes, time, processor: until the savings stay the same", style="dim"))
    for machine in answer["machines"]:
        if (note := merging.came_and_went(machine)) is not None:
            people.print(Text(note), soft_wrap=True)
        if machine["process"] is not None:
            _tell_process(people, machine["name"], machine["process"])
    for asked in told(answer):
        table = _grid(asked.title, *asked.heads)
        for row in asked.rows:
            table.add_row(*map(Text, row))
        people.print(table)
        for note in asked.notes:
            people.print(Text(note, style="dim"))
    if "owners" in answer:
        owners = answer["owners"]
        table = _grid("if only machines of one owner may merge", "owner", "machines", *COLUMNS)
        for row in owners["owners"]:
            cells = _cells(row["metrics"], COLUMNS)
            table.add_row(row["owner"], f"{row['machines']}", *cells)
        people.print(table)
        people.print(f"all owners: {100 * owners['saving']:.1f} % saved", style="dim")
    if "what_if" in answer:
        table = _grid("what if", "knob", *KNOB_COLUMNS)
        for row in answer["what_if"]:
            name = "\n".join(f"{key}={value}" for key, value in row["set"])
            table.add_row(name or "as asked", *_cells(row["metrics"], KNOB_COLUMNS))
        people.print(table)
    if "why_not" in answer:
        _tell_why(people, answer["why_not"])


def _tell_process(people: Console, name: str, process: dict[str, Any]) -> None:
    parts = [f"{process['anonymous']:,} anonymous pages read"]
    parts.append(f"{process['offered']:,} offered for merging (MADV_MERGEABLE)")
    parts.append(f"{process['shared_already']:,} of files or shared memory left out")
    if process["frames_known"]:
        parts.append(f"{process['merged']:,} merged by the kernel so far")
        parts.append(f"{process['huge']:,} in huge pages")
    if process["forked"]:
        parts.append(f"{process['forked']:,} one frame with a forked process already")
    if process["swapped"]:
        parts.append(f"{process['swapped']:,} in swap, not read")
    people.print(Text(f"{name}: {'; '.join(parts)}", style="dim"), soft_wrap=True)
    kernel = merging.kernel_now()
    if kernel is not None:
        runs = "merges" if kernel["run"] == 1 else f"is off (run {kernel['run']})"
        people.print(
            Text(
                f"  the kernel's KSM {runs}; in all {kernel['pages_sharing']:,} pages saved, "
                f"{kernel['ksm_zero_pages']:,} zero pages",
                style="dim",
            ),
            soft_wrap=True,
        )


def _tell_why(people: Console, why: dict[str, Any]) -> None:
    total = max(why["pages"], 1)
    table = _grid("why not", "pages", "count", "%")
    for name, key in WHY:
        if key == "not_compared" and not why[key]:
            continue
        table.add_row(name, f"{why[key]:,}", f"{100 * why[key] / total:.1f}")
    people.print(table)
    if why["not_in_image"]:
        note = f"{why['not_in_image']:,} pages that images name but do not hold are left out"
        people.print(Text(note, style="dim"), soft_wrap=True)
    if why["nearly_identical"]:
        classes = zip(NEAR, why["near_by_bytes"], strict=True)
        counts = ", ".join(f"{name}: {count:,}" for name, count in classes)
        most = max(range(16), key=lambda at: why["near_by_offset"][at])
        people.print(
            f"nearly identical, bytes that differ: {counts}; most of them at offsets "
            f"{most * 256:#x} to {most * 256 + 255:#x}",
            soft_wrap=True,
        )
        for pair in why["examples"][:3]:
            people.print(
                Text(
                    f"  {pair['a']} and {pair['b']}: {pair['bytes']} bytes, "
                    f"the first at {pair['first']:#x}",
                    style="dim",
                ),
                soft_wrap=True,
            )
    if why["regions"]:
        table = _grid("where unmerged pages lie", "region", "pages", "changed", "near")
        for region in why["regions"][:8]:
            table.add_row(
                Text(region["region"]),
                f"{region['unmerged']:,}",
                f"{region['changed']:,}",
                f"{region['near']:,}",
            )
        people.print(table)


NEAR = ("1", "2-4", "5-16", "17-64")
WHY = (
    ("merged", "merged"),
    ("changed between snapshots", "changed"),
    ("equal to another, not merged", "equal_unmerged"),
    ("nearly identical (64 bytes at most)", "nearly_identical"),
    ("no page is near", "unique"),
    ("not compared: over --memory", "not_compared"),
)


def generate(
    mix: Annotated[str, typer.Argument(help="What the pages hold: paper, volatile, cow, ..")],
    target: Annotated[Path, typer.Argument(help="The folder of snapshots to make.", **PATH)],
    pages: Annotated[int, typer.Option(min=8, max=MOST >> 32, help="Pages.")] = 4096,
    passes: Annotated[int, typer.Option(min=1, max=10_000, help="Snapshots.")] = 1,
) -> None:
    """Make a folder of snapshots of a generated machine.

    [bold]Example[/bold]: sardonyx merge generate cow images/cow --pages 4096 --passes 14
    """
    known = _core.merge_mixes()
    if mix not in known:
        raise _core.SardonyxError(f"{mix}: there is no such mix; they are {', '.join(known)}")
    if target.exists():
        raise _core.SardonyxError(f"{target}: is there already; name a folder that is not")
    target.mkdir(parents=True)
    width = len(str(passes))
    for number in range(1, passes + 1):
        snapshot = _core.merge_snapshot(mix, pages, number)
        (target / f"{number:0{width}}.raw").write_bytes(snapshot)


add_command(app, run)
add_command(app, in_time, name="time")
add_command(app, generate)
