"""Prints the tables of crates/trace/src/recorded.rs: what the requests of recordings are
like, whatever they carry.

Of reads and of writes, in thousandths: gaps by their number of bits, and where the line lies.
Left out: any order beyond that of reads and writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ("cc1", "pmdk-tx", "redis", "sqlite3", "stockfish", "x264")
#: Operations that are requests to memory: a read miss, and the three that write a line back.
READ, REQUESTS = 0, (0, 1, 2, 3)
#: Bits of a gap, bits of a distance to the last request of the same line.
GAPS, DISTANCES = 18, 20
#: Requests of the same kind whose neighbourhood counts.
NEAR = 16
#: A line that was not asked for before: the one after a near one, of its page, of another page.
NEXT, PAGE, ELSEWHERE = DISTANCES, DISTANCES + 1, DISTANCES + 2


def requests(name: str) -> Iterator[tuple[bool, int, int]]:
    """Of each request: whether it is a read, its line, and its gap."""
    table = pq.read_table(ROOT / "traces" / f"{name}.parquet", columns=["gap", "op", "line"])
    gap = 0
    for own, op, line in zip(*(table[c].to_pylist() for c in ("gap", "op", "line")), strict=True):
        gap += own
        if op in REQUESTS:
            yield op == READ, line, gap
            gap = 0


def thousandths(counts: list[int]) -> list[int]:
    """Shares that add up to 1000: each count's, and what rounding leaves to the largest."""
    total = sum(counts)
    shares = [round(1000 * count / total) for count in counts]
    shares[shares.index(max(shares))] += 1000 - sum(shares)
    return shares


def recorded(name: str) -> str:
    """The table of one recording."""
    gaps = {kind: [0] * GAPS for kind in (True, False)}
    lines = {kind: [0] * (DISTANCES + 3) for kind in (True, False)}
    near: dict[bool, deque[int]] = {kind: deque(maxlen=NEAR) for kind in (True, False)}
    last: dict[int, int] = {}
    count = total = reads = switches = 0
    before = None
    for read, line, gap in requests(name):
        count, total, reads = count + 1, total + gap, reads + read
        switches += before is not None and before != read
        before = read
        gaps[read][min(gap.bit_length(), GAPS - 1)] += 1
        if line in last:
            where = min((count - last[line]).bit_length() - 1, DISTANCES - 1)
        elif line - 1 in near[read]:
            where = NEXT
        elif line // 64 in {other // 64 for other in near[read]}:
            where = PAGE
        else:
            where = ELSEWHERE
        lines[read][where] += 1
        last[line] = count
        near[read].append(line)
    rows = [
        f"name: {name!r}".replace("'", '"'),
        f"read_share: {reads / count:.3f}",
        f"switches: {switches / count:.3f}",
        f"mean_gap: {total / count:.0f}",
        f"lines: {len(last)}",
        *(
            f"{what}: [{', '.join(str(thousandths(of[kind])) for kind in (True, False))}]"
            for what, of in (("gaps", gaps), ("places", lines))
        ),
    ]
    return "    Recorded {\n" + "".join(f"        {row},\n" for row in rows) + "    },"


if __name__ == "__main__":
    for each in RECORDINGS:
        print(recorded(each))
