"""``sardonyx store``: block stores that keep equal blocks once, one file a command."""

from __future__ import annotations

from sardonyx.cli.common import subcommands
from sardonyx.cli.store import check, compare, estimate, serve

app = subcommands(
    "Block stores that keep equal blocks once: a resistive CAM and its conventional rival.",
    compare.compare,
    serve.serve,
    check.check,
    estimate.estimate,
)
