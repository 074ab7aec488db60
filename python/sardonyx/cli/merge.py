"""``sardonyx merge``: what same-page merging would save on real page images, and why not more.

``sardonyx merge time`` says what merging costs (``merge_time``), ``sardonyx merge generate`` makes
images. Left out: everything that computes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx import _core
from sardonyx.cli.common import (
    MOST,
    PATH,
    add_command,
)
from sardonyx.cli.derived import Command
from sardonyx.cli.help import CONTEXT, Group
from sardonyx.cli.merge_time import in_time


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
            return Command("merge")
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=_MachinesFirst,
    context_settings=CONTEXT,
    help="Merge equal pages of real page images, as the kernel does and as PageForge does.",
    rich_markup_mode="rich",
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


add_command(app, in_time, name="time")
add_command(app, generate)
