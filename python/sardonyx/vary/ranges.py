"""What a choice may be: numbers between two, or a few words; and the assumed keys of a machine.

Left out: which values are tried (``cells``, ``turning``).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx import _core

#: Assumed keys whose other values are another design or machine, and no uncertainty about this one.
OTHERS = frozenset({"cores", "encryption.enabled"})


@dataclass(frozen=True, slots=True)
class Range:
    """What an assumed key may be: numbers between two, or a few other words."""

    parameter: str
    value: str
    why: str
    low: str = ""
    high: str = ""
    whole: bool = False
    others: tuple[str, ...] = ()
    reason: str = ""
    #: The reason why the key cannot matter, or that no source gives other values.
    left_out: str | None = None

    @property
    def ends(self) -> list[str]:
        """The values to try, alone."""
        if self.left_out is not None:
            return []
        return [each for each in (self.others or (self.low, self.high)) if not self._is(each)]

    @property
    def values(self) -> str:
        """Its values for people."""
        if self.left_out is not None:
            return self.value
        words = ", ".join(sorted({self.value, *self.others}))
        return words if self.others else f"{self.low} to {self.high}"

    def _is(self, text: str) -> bool:
        return text == self.value or (not self.others and float(text) == float(self.value))

    @property
    def _grid(self) -> bool:
        """Whether the value and both ends are powers of two, so that what lies between is, too."""
        numbers = [float(each) for each in (self.low, self.value, self.high)]
        return self.whole and all(n >= 1 and math.log2(n).is_integer() for n in numbers)

    def between(self, a: str, b: str, share: float = 0.5) -> str | None:
        """A value so far from one to another; nothing if there is none between."""
        x, y = float(a), float(b)
        if self._grid:
            exponent = math.log2(x) + share * (math.log2(y) - math.log2(x))
            found = float(2 ** round(exponent))
        elif min(x, y) > 0 and max(x, y) >= 4 * min(x, y):
            found = x * (y / x) ** share
        else:
            found = x + share * (y - x)
        if self.whole and not self._grid:
            found = round(found)
        if min(x, y) < found < max(x, y):
            return self._text(found)
        if self._grid or not self.whole or abs(x - y) < 2:
            return None
        return self._text(math.floor((x + y) / 2))

    def drawn(self, generator: random.Random) -> str:
        """Any of its values."""
        return self.at(generator.random())

    def at(self, share: float) -> str:
        """The value so far through its values; numbers even, or by their size where they span a
        factor of 4. ``share`` is from 0 to below 1.
        """
        if self.others:
            words = sorted((self.value, *self.others))
            return words[int(share * len(words))]
        low, high = float(self.low), float(self.high)
        if self._grid:
            steps = round(math.log2(high / low)) + 1
            return self._text(low * 2 ** int(share * steps))
        if low > 0 and high >= 4 * low:
            found = low * (high / low) ** share
        else:
            found = low + share * (high - low)
        return self._text(round(found) if self.whole else found)

    def _text(self, number: float) -> str:
        return str(int(number)) if self.whole else f"{number:.4g}"


def ranges(machine: str, overrides: Sequence[tuple[str, str]]) -> list[Range]:
    """The assumed keys of a machine, with what each may be."""
    return ranges_of(json.loads(_core.machine(machine, list(overrides)))["assumed"])


def ranges_of(assumed: Iterable[Mapping[str, Any]]) -> list[Range]:
    """The same of keys as the simulator lists them."""
    found = []
    for each in assumed:
        said = each["range"] or {}
        value = str(each["value"]).strip('"')
        key: dict[str, Any] = {
            "parameter": str(each["parameter"]),
            "value": value,
            "why": str(each["why"]),
        }
        if key["parameter"] in OTHERS:
            found.append(Range(**key, left_out="another value is another design"))
        elif "inert" in said:
            found.append(Range(**key, left_out=f"changes no figure: {said['inert']}"))
        elif "others" in said:
            others = tuple(str(word) for word in said["others"])
            found.append(Range(**key, others=others, reason="its other words"))
        elif said:
            numbers = {name: said[name] for name in ("low", "high", "whole")}
            found.append(Range(**key, **numbers, reason=str(said["why"])))
        else:
            found.append(Range(**key, left_out="the machine gives no range"))
    return found
