"""Sizes and times as people write them: ``4096``, ``4K``, ``16M``, ``1G``; ``90s``, ``2h``."""

from __future__ import annotations

from sardonyx import _core

#: The suffixes of a size.
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
#: The suffixes of a time.
UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_size(text: str) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``, as the one reader of sizes has it.

    Raises:
        ValueError: This is not a size; the message says so, and what to give.
    """
    return _core.parse_size(text)


def size_text(size: int) -> str:
    """Bytes as ``parse_size`` reads them, under the largest suffix that leaves a whole number."""
    suffix = max(
        (suffix for suffix, unit in SUFFIXES.items() if size % unit == 0),
        key=lambda suffix: SUFFIXES[suffix] if size else 0,
    )
    return f"{size // SUFFIXES[suffix]}{suffix}"


def amount(size: float) -> str:
    """Bytes for people, with a decimal prefix that leaves at least one digit before the point."""
    for unit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{size / unit:,.3g} {prefix}B"
    return f"{size:,.0f} bytes"


def parse_time(text: str) -> float:
    """Seconds from ``90s``, ``10m`` or ``2h``.

    Raises:
        ValueError: This is not a duration; the message says so, and what to give.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or len(number) > 6:
        raise ValueError("is not a duration; give 90s, 10m or 2h")
    return float(int(number) * UNITS[unit])


def memory(number: float) -> str:
    """Bytes as people say them."""
    return f"{number / 2**30:.1f} GiB" if number >= 2**30 else f"{number / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
