"""What SCA's policies must count of its programs, from what these ask of the controller.

As ``independent_model``, without time. A program's requests are those of the run itself
(``--requests``); its loads, stores and processor's caches are not modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from independent_model import COUNTERS, LINE, WORD, Figures, Machine, booked, marks

#: The first line of the first program: ``pages.programs_first`` (keys.md).
FIRST = 126 * 64


class Request(NamedTuple):
    """A request of a program: ``read``, ``write`` or ``metadata``, a counter write-back."""

    kind: str
    line: int


def setup_lines(requests: Iterable[Request], counter_bytes: float) -> int:
    """Lines that a program's setup has written, one after the other from ``FIRST`` on.

    Setup takes no simulated time (programs.md), so no request shows it. Each line that setup or the
    run has written has a counter, so the run's ``counter_bytes`` says how many setup wrote.
    """
    total = int(counter_bytes) // WORD
    written = {line for kind, line in requests if kind == "write"}
    sums = ((lines, sum(each >= FIRST + lines for each in written)) for lines in range(total + 1))
    return next(lines for lines, later in sums if lines + later == total)


@dataclass
class Counters:
    """Counters on chip: which lines of them the cache has, which counters are not written back.

    The cache holds all that setup and the run touch.
    """

    cached: set[int]
    changed: dict[int, set[int]]
    misses: int = 0
    lines_written: int = 0
    counters_written: int = 0

    def look_up(self, group: int) -> None:
        """A read or a write looks its counter up."""
        self.misses += group not in self.cached
        self.cached.add(group)

    def persist(self, counters: int) -> None:
        """A counter line is written for so many counters; for none it is not."""
        self.lines_written += counters > 0
        self.counters_written += counters


def program(requests: Sequence[Request], policy: str, setup: int, machine: Machine) -> Figures:
    """The counts of a program under a policy, once setup has written ``setup`` lines.

    Counter-atomic are the writes whose counters no ``counter_cache_writeback()`` takes: those of
    the log's header (programs.md, "Logs"; SCA Fig. 9). They, and all writes of ``fca``, write their
    counter with the line (SCA Sec. 3.2.2, 5.2.2). Other counters of ``sca`` wait for a counter
    write-back, which writes a counter line once, if it has changed (Sec. 4.3).
    """
    on_demand = {line // COUNTERS for kind, line in requests if kind == "metadata"}
    written = set(range(FIRST, FIRST + setup))
    counters = Counters({line // COUNTERS for line in written}, {})
    counts: Counter[str] = Counter()
    for kind, line in requests:
        group = line // COUNTERS
        if kind == "metadata":
            counters.persist(len(counters.changed.pop(group, ())))
            continue
        counts[f"{kind}s"] += 1
        counters.look_up(group)
        if kind == "read":
            counts["reads_of_unwritten_lines"] += line not in written
            continue
        written.add(line)
        if policy == "sca" and group in on_demand:
            counters.changed.setdefault(group, set()).add(line)
        else:
            counters.persist(1)
    return figures(counts, policy, counters, marks(setup, counts["writes"]), machine)


def figures(
    counts: Counter[str], policy: str, counters: Counters, ahead: int, machine: Machine
) -> Figures:
    """What is booked for a policy: counter lines only where counters have lines of their own."""
    requests = counts["reads"] + counts["writes"]
    encrypts, apart = policy != "no-encryption", policy in ("fca", "sca")
    counts["data.medium_reads"] = counts["reads"]
    counts["data.medium_writes"] = counts["data_writes"] = counts["writes"]
    counts["counter.medium_reads"] = counters.misses if apart else 0
    counts["counter.medium_writes"] = (counters.lines_written if apart else 0) + ahead * encrypts
    found = booked(counts, requests if encrypts else 0, machine)
    words = (counters.counters_written + ahead) * encrypts
    found["medium_write_bytes"] = LINE * counts["writes"] + WORD * words
    if apart:
        found["counter_cache_hit_rate"] = 1 - counters.misses / requests
    return found
