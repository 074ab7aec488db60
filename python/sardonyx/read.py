"""Values that know which of their fields somebody has read.

What a user asks for is such a value: what was given and is read by nobody would do nothing, and is
an error. So nobody lists which wishes go with which.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Read:
    """The base of a dataclass whose fields are watched."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            read: set[str] = object.__getattribute__(self, "__dict__").setdefault("_read", set())
            read.add(name)
        return object.__getattribute__(self, name)

    def unread(self) -> list[str]:
        """The fields that nobody has read, in their order."""
        read = self.__dict__.get("_read", set())
        return [each.name for each in fields(self) if each.name not in read]  # type: ignore[arg-type]
