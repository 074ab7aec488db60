"""``sardonyx store compare``: the resistive CAM and its rival on one stream of blocks."""

from __future__ import annotations

from sardonyx import _core


def compare() -> None:
    """Compare deduplicating stores."""
    raise _core.SardonyxError("store compare: is being built")
