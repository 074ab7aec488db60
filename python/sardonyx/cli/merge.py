"""``sardonyx merge``: what same-page merging would save on real page images, and why not more.

Left out: everything that is of one of its commands (``merging``).
"""

from __future__ import annotations

from typing import Any

import typer

from sardonyx.cli.derived import Command
from sardonyx.cli.help import CONTEXT, Group


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
