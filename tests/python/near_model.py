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


@dataclass
class Admission:
    """Which missed blocks are brought: at the ``after``-th miss that is seen, one of ``sample`` is,
    and so many requests after the last one that was."""

    after: int = 1
    sample: int = 1
    every: int = 0


def blocks(
    records: Sequence[Record],
    lines: int,
    shape: tuple[int, int],
    writes: str,
    *,
    fills: bool = True,
    admission: Admission | None = None,
) -> Near:
    """A cache of so many lines, in sets of so many ways of blocks of so many lines (``shape``).

    Its tags are on chip: a hit is one access. A miss whose block is brought reads all of that, and
    the block that was used longest ago goes as far as it is dirty, line by line as the places are
    taken. Others go to the persistent medium, as writes do that must be there (``through``), or
    that miss unless the cache ``fills`` on them.
    """
    ways, size = shape
    near, sets = Near(), max(1, lines // (ways * size))
    held: dict[int, dict[int, dict[int, Record]]] = {}
    seen, admission = Counter[int](), admission or Admission()
    misses, brought = 0, -admission.every

    def admits(block: int, number: int) -> bool:
        nonlocal misses, brought
        misses += 1
        if misses % admission.sample:
            return False
        seen[block] += 1
        if seen[block] < admission.after or number - brought < admission.every:
            return False
        brought = number
        del seen[block]
        return True

    for number, record in enumerate(records):
        block = record.line // size
        of_set = held.setdefault(block % sets, {})  # in order of use, dirty lines of each
        hit = block in of_set
        near.counts["write_hits" if record.writes else "read_hits"] += hit
        through = record.writes and writes == "through"
        if through or not (record.writes or hit):
            near.far.append(record)
        if not hit and not through and (fills or not record.writes) and admits(block, number):
            oldest = of_set.pop(next(iter(of_set))) if len(of_set) == ways else {}
            near.counts["near_fills"] += size
            near.counts["near_writes"] += size
            of_set[block] = {}
            for offset, line in enumerate(range(block * size, (block + 1) * size)):
                if offset in oldest:
                    near.counts["near_reads"] += 1
                    near.counts["near_victims"] += 1
                    near.far.append(oldest[offset])
                if line != record.line or record.writes:
                    near.far.append(Record(False, line, None))
        elif not hit:
            near.counts["near_passed"] += 1
            if record.writes and not through:
                near.far.append(record)
            continue
        of_set[block] = of_set.pop(block)
        if record.writes:
            near.counts["near_writes"] += 1
            if through:
                of_set[block].pop(record.line % size, None)
            else:
                of_set[block][record.line % size] = record
        elif hit:
            near.counts["near_reads"] += 1
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
