"""What traces say of themselves, independent of any design."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from sardonyx.values import Checked, expected, read, written


def number(value: object) -> object:
    if value is None or type(value) is int:
        return value
    if type(value) is not float:
        raise expected("a number or null", value)
    if not math.isfinite(value):
        raise expected("a finite number or null", value)
    return value


#: The converter checks all of it, so the type has nothing left to check.
Number: TypeAlias = Annotated[int | float | None, Checked(number)]


@dataclass(frozen=True, slots=True)
class Locality:
    """Contents written this many times: how many contents, and how many of all writes they
    account for.
    """

    times: str
    contents: Number = None
    contents_share: Number = None
    writes: Number = None
    writes_share: Number = None


@dataclass(frozen=True, slots=True)
class Collisions:
    """Distinct contents of one trace whose fingerprint an earlier content had, the writes that
    meet such a fingerprint, and both relative to those of CRC-32.
    """

    fingerprint: str
    contents: Number = None
    writes: Number = None
    writes_share: Number = None
    contents_to_crc32: Number = None
    writes_to_crc32: Number = None


@dataclass(frozen=True)
class Info:
    """What a trace or a program says about itself, under the names of ``sardonyx trace info``;
    ``other`` is all but the lists of this class, as it came.
    """

    locality: tuple[Locality, ...] = ()
    collisions: tuple[Collisions, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, document: object) -> Info:
        """It from what ``trace info`` says."""
        if not isinstance(document, Mapping):
            raise expected("an object", document)
        other = {n: each for n, each in document.items() if n not in ("locality", "collisions")}
        return read(cls, {**document, "other": other})

    @property
    def facts(self) -> dict[str, float | None]:
        """The numbers among it, independent of any design."""
        return {
            name: value
            for name, value in self.other.items()
            if value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        }

    def document(self) -> dict[str, Any]:
        """It as ``of`` reads it, the numbers first."""
        return {**self.facts, **self.other} | {
            "locality": written(self.locality),
            "collisions": written(self.collisions),
        }


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace, or program, and what was counted in it."""

    name: str
    info: Annotated[Info, Checked(Info.of)] = field(default_factory=Info)

    @property
    def facts(self) -> dict[str, float | None]:
        return self.info.facts

    @property
    def locality(self) -> tuple[Locality, ...]:
        return self.info.locality

    @property
    def collisions(self) -> tuple[Collisions, ...]:
        return self.info.collisions

    @property
    def program(self) -> str | None:
        """The program's name, if it is one and no trace."""
        name = self.info.other.get("program")
        return name if isinstance(name, str) else None
