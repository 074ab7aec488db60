"""What logs that wait on chip must count, in Python, from what a program asks of the controller.

Nothing here shares code with the simulator. Its rules are those of ``rivals.md``; there is no time.
A circular log's counts are those of whole lines, because requests have no contents.
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


#: Lines of a circular log that a whole line of data takes.
PIECES = 2


class Circular:
    """FWB's log; MorLog's if new lines are logged late. Walks force back what is dirty twice."""

    def __init__(self, lines: int, walks: int, late: bool) -> None:
        self.lines, self.late = lines, late
        self.every = self.next = max(lines // walks, 1)
        self.log = deque[tuple[int, int]]()
        self.dirty: dict[int, bool] = {}
        self.running = 0
        self.counts = Counter[str]()

    def append(self, line: int, pieces: int) -> None:
        """Appends entries of the transaction under way, and makes room for them first."""
        if len(self.log) + pieces > self.lines:
            self.walk(everything=True)
        assert len(self.log) + pieces <= self.lines
        self.log.extend([(self.running, line)] * pieces)
        self.counts["log_lines"] += pieces
        self.counts["log_lines_most"] = max(self.counts["log_lines_most"], len(self.log))

    def walk(self, everything: bool) -> None:
        """Forces lines back, and gives up entries of lines that memory has."""
        self.next = self.counts["log_lines"] + self.every
        due = [line for line, marked in self.dirty.items() if marked or everything]
        self.dirty = {line: True for line in self.dirty if line not in due}
        self.counts["log_forced_back"] += len(due)
        while self.log and self.log[0][0] != self.running and self.log[0][1] not in self.dirty:
            self.log.popleft()

    def walk_if_due(self) -> None:
        """Walks after so many lines of the log."""
        if self.counts["log_lines"] >= self.next:
            self.walk(everything=False)

    def run(self, changed: Sequence[Sequence[int]]) -> Counter[str]:
        """The counts of transactions that have changed these lines."""
        for number, lines in enumerate(changed, 1):
            self.running = number
            for line in lines:
                self.append(line, PIECES)
                self.walk_if_due()
            for line in lines:
                if not self.late:
                    self.append(line, PIECES)
                self.dirty.setdefault(line, False)
                self.walk_if_due()
            for line in lines if self.late else []:
                if line in self.dirty:
                    self.append(line, PIECES)
            if lines:
                self.append(-1, 1)
            self.running = 0
            self.walk_if_due()
            self.counts["log_entries"] += len(lines)
        self.counts["log.medium_writes"] = self.counts["log_lines"]
        self.counts["data.medium_writes"] = self.counts["log_forced_back"]
        return self.counts
