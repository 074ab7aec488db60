"""``sardonyx merge``: what same-page merging would save on real page images, and why not more.

``sardonyx merge validate`` holds the model to the kernel that runs, ``sardonyx merge time`` says
what merging costs (``merge_time``), ``sardonyx merge generate`` makes images. Left out: everything
that computes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from sardonyx import _core
from sardonyx.cli.common import (
    CHECK_FAILED,
    MOST,
    PATH,
    add_command,
    check_json_target,
    err,
    for_people,
    write_json,
)
from sardonyx.cli.derived import Command, Line
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.merge_time import in_time
from sardonyx.cli.options import JsonTo
from sardonyx.cli.progress import Watcher
from sardonyx.runs import merging


class _MachinesFirst(Group):
    """A word that is no command's name is a machine: ``merge IMAGE..`` is ``merge run IMAGE..``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.list_commands(ctx):
            args = ["run", *(args or ["--help"])]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return ["run", *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "run":
            line = Line("merge", "Directory for report.html and merge.json.", "pages")
            return Command("merge", line)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=_MachinesFirst,
    context_settings=CONTEXT,
    help="Merge equal pages of real page images, as the kernel does and as PageForge does.",
    rich_markup_mode="rich",
)


def validate(
    seed: Annotated[int, typer.Option(min=0, max=2**40, help="Seed of contents and writes.")] = 1,
    mixes: Annotated[int, typer.Option(min=1, max=10_000, help="Mixes, each a run.")] = 10,
    json_to: JsonTo = None,
) -> None:
    """Drive the running kernel's KSM over random mixes and compare the model with it, pass by pass.

    Needs root, and that nobody else uses KSM. The knobs are restored however it ends. Exit status 1
    if a counter or the number of page frames differs.

    [bold]Example[/bold]: sudo sardonyx merge validate --seed 7 --mixes 20
    """
    check_json_target(json_to)
    with Watcher(err, "mixes") as watch:
        answer = merging.validate(seed, mixes, watch)
    people = for_people(json_to)
    wrong = answer["mismatches"]
    passes = sum(mix["passes"] for mix in answer["mixes"])
    verdict = "all the same" if not wrong else f"{len(wrong)} passes differ"
    people.print(
        f"Linux {answer['kernel']}, seed {seed}: {len(answer['mixes'])} mixes, {passes} passes, "
        f"{answer['values']:,} values: {verdict}",
        soft_wrap=True,
    )
    costs = [mix["ksmd_ns_a_page"] for mix in answer["mixes"] if mix["ksmd_ns_a_page"] is not None]
    if costs:
        mean = math.exp(sum(map(math.log, costs)) / len(costs)) if min(costs) > 0 else 0.0
        models = sum(mix["model_ns_a_page"] for mix in answer["mixes"]) / len(answer["mixes"])
        people.print(
            Text(
                f"ksmd took {mean:,.0f} ns a page scanned (geometric mean); the model's keys say "
                f"{models:,.0f} ns",
                style="dim",
            ),
            soft_wrap=True,
        )
    for row in wrong[:5]:
        people.print(f"mix {row['mix']}, pass {row['pass']}:")
        for name, value in row["kernel"]["counters"].items():
            model = row["model"]["counters"][name]
            if model != value:
                people.print(f"  {name}: kernel {value:,}, model {model:,}")
        if row["kernel"]["frames"] != row["model"]["frames"]:
            frames = (row["kernel"]["frames"], row["model"]["frames"])
            people.print(f"  frames: kernel {frames[0]:,}, model {frames[1]:,}")
    write_json(json_to, answer)
    if wrong:
        raise typer.Exit(CHECK_FAILED)


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


add_command(app, in_time, name="time")
add_command(app, validate)
add_command(app, generate)
