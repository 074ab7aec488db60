"""What logs that wait on chip must count, in Python, from what a program asks of the controller.

Nothing here shares code with the simulator. Its rules are those of ``rivals.md``; there is no time.
A program's requests are those of the run itself (``--requests``): each line that a transaction
changes is written once before its commit, if the caches keep it until then.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

#: Entries of a line, each of half of it.
HALVES = 2
#: Old lines for which a record of ``log.records`` has room.
RECORD = 7


def transactions(requests: Iterable[tuple[str, int]]) -> list[list[int]]:
    """The lines that each transaction has changed, from requests in their order."""
    done: list[list[int]] = []
    open_: list[int] = []
    for kind, line in requests:
        if kind == "write" and line not in open_:
            open_.append(line)
        elif kind == "commit":
            done.append(open_)
            open_ = []
    return done


def proteus(changed: Sequence[Sequence[int]], queue: int, records: int) -> Counter[str]:
    """Proteus's counts: a queue whose oldest entry is written if it is full; commits empty it."""
    counts, waiting = Counter[str](), deque[int]()
    for lines in changed:
        counts["log_entries"] += len(lines)
        for entry in range(HALVES * len(lines)):
            if len(waiting) == queue:
                waiting.popleft()
                counts["log_entries_spilled"] += 1
            waiting.append(entry)
            counts["log_entries_pending_most"] = max(
                counts["log_entries_pending_most"], len(waiting)
            )
        counts["log_entries_dropped"] += len(waiting)
        waiting.clear()
        buckets = -(-len(lines) // (RECORD * records))
        counts["log_buckets_most"] = max(counts["log_buckets_most"], buckets)
    counts["log.medium_writes"] = counts["log_entries_spilled"]
    return counts


def of_lines(changed: Sequence[Sequence[int]], entries: int, records: int) -> Counter[str]:
    """Counts of Silo and LAD: where there is no room, the oldest line's halves are written."""
    counts, buffer = Counter[str](), list[int]()
    for lines in changed:
        for line in lines:
            if len(buffer) == entries:
                del buffer[0]
                counts["log_entries_spilled"] += HALVES
            buffer.append(line)
            most = max(counts["log_entries_pending_most"], HALVES * len(buffer))
            counts["log_entries_pending_most"] = most
        counts["log_entries"] += len(lines)
        counts["log_entries_dropped"] += HALVES * len(buffer)
        buffer.clear()
        buckets = -(-len(lines) // (RECORD * records))
        counts["log_buckets_most"] = max(counts["log_buckets_most"], buckets)
    counts["log.medium_writes"] = counts["log_entries_spilled"]
    return counts
