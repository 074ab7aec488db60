"""Sizes as people write them: ``4096``, ``4K``, ``16M``, ``1G``."""

from __future__ import annotations

#: What may follow the number of a size.
SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
#: Digits of a size, at most.
DIGITS = 15


def parse_size(text: str) -> int:
    """Bytes from ``4096``, ``4K``, ``16M`` or ``1G``.

    Raises:
        ValueError: This is no size; the message says so, and what to give.
    """
    number, unit = text[:-1], text[-1:].upper()
    if unit not in SUFFIXES:
        number, unit = text, ""
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
        raise ValueError("is no size; give bytes, as in 4096, 4K or 16M")
    return int(number) * SUFFIXES[unit]
