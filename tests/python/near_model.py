"""What a near medium must count on a trace, and what it leaves to the persistent one, in Python.

Nothing here shares code with the simulator. Its rules are those of ``two-media.md``; there is no
time, as in ``independent_model``, whose models take what is left to the persistent medium.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from independent_model import PAGE_LINES, Record

#: Keys under which no count of the near medium depends on time.
UNTIMED: dict[str, bool | int | str] = {
    "near.medium.queues.coalescing": False,
    "near.medium.queues.forwarding": False,
}


@dataclass
class Near:
    """Counts of the near medium, and the accesses that reach the persistent one, in order."""

    counts: Counter[str] = field(default_factory=Counter)
    far: list[Record] = field(default_factory=list)


@dataclass
class Slot:
    """A line of the cache: which it is, whether it is newer than below, and its bytes."""

    line: int
    dirty: bool
    data: bytes | None


def cache(
    records: Sequence[Record], lines: int, writes: str, *, fills: bool, looks: bool = True
) -> Near:
    """A direct-mapped cache of so many lines.

    Each request reads its slot, whose tag comes along. A read that misses has the line brought and
    put there, a write that misses too if ``fills``; a dirty line that has to go is written below
    after the one that takes its place is read. ``through`` writes below each time, first. Unless it
    ``looks``, a write reads nothing.
    """
    near, slots = Near(), dict[int, Slot]()
    for record in records:
        held = slots.get(record.line % lines)
        hit = held is not None and held.line == record.line
        through = record.writes and writes == "through"
        if through:
            near.far.append(record)
        near.counts["near_reads"] += looks or not record.writes
        near.counts["write_hits" if record.writes else "read_hits"] += hit
        brings = not hit and (not record.writes or (fills and not through))
        if brings:
            near.far.append(Record(False, record.line, None if record.writes else record.data))
            near.counts["near_fills"] += 1
            near.counts["near_writes"] += 1
        if not hit and held is not None and held.dirty:
            near.far.append(Record(True, held.line, held.data))
            near.counts["near_victims"] += 1
        if record.writes:
            slots[record.line % lines] = Slot(record.line, not through, record.data)
            near.counts["near_writes"] += 1
        elif not hit:
            slots[record.line % lines] = Slot(record.line, False, record.data)
    return near


def beside(
    records: Sequence[Record], pages: int, policy: str, weights: tuple[int, int] = (1, 1)
) -> Near:
    """Pages in the order of first touch, so many of which lie in the near medium.

    ``first`` fills that before it takes any of the other; ``weighted`` takes turns. The lines of
    ``records`` are numbered by first touch already; those of the persistent medium are numbered
    anew.
    """
    near, there, frames = Near(), set[int](), dict[int, int]()
    for record in records:
        page = record.line // PAGE_LINES
        if page not in frames:
            turn = len(frames) % sum(weights)
            wanted = policy == "first" or turn < weights[0]
            if wanted and len(there) < pages:
                there.add(page)
            frames[page] = len(frames) - len(there)
        if page in there:
            near.counts["near_writes" if record.writes else "near_reads"] += 1
        else:
            line = frames[page] * PAGE_LINES + record.line % PAGE_LINES
            near.far.append(Record(record.writes, line, record.data))
    return near
