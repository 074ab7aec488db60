"""What ESD, its baseline and SCA's policies must count on a trace, computed anew in Python.

Nothing here shares code with the simulator or was taken from it. Each rule names the section of the
paper or the page that it is from. Where those leave a choice open, runs of the simulator have
settled it, and the rule is marked *the simulator's choice*. There is no time: a request is over
before the next one begins. So figures hold where time decides none: without merging in the write
queue and without reads that a queued write answers (``UNTIMED``).

``esd`` and ``identity`` take a trace's records and return figures under the simulator's names, with
``CAUSE.medium_reads``, ``CAUSE.medium_writes`` and ``CAUSE.energy_nj``.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow.parquet as pq

LINE = 64
PAGE_LINES = 64
#: A counter has a word of eight bytes (designs.md, "Counter mode").
WORD = 8
COUNTERS = LINE // WORD
#: Lines whose mapping and count a line of the AMT holds: 6.4 bytes each (designs.md, "ESD").
AMT_LINES = 10
#: Of them a mapping has five (ESD Sec. III-B), and a count the next one: the simulator's choice.
MAPPING = 5
AMT_ENTRY = MAPPING + 1
#: Bytes of an EFIT entry (ESD Sec. III-B: 8 of check bits, 4 + 1 of address, 1 of ``referH``).
EFIT_ENTRY = 14
#: Keys under which no count depends on time.
UNTIMED: dict[str, bool | int | str] = {
    "medium.queues.coalescing": False,
    "medium.queues.forwarding": False,
    "metadata.sets": "modulo",
}

Figures: TypeAlias = dict[str, float]


class Record(NamedTuple):
    """A read or a write of a trace."""

    writes: bool
    line: int
    data: bytes | None


@dataclass(frozen=True)
class Table:
    """A cache on chip: its bytes and its ways."""

    size: int = 524288
    ways: int = 8


@dataclass(frozen=True)
class Machine:
    """What the models need of the machine ``esd`` (ESD Table I and keys.md)."""

    counters: Table = Table()
    amt: Table = Table()
    efit: Table = Table()
    refer_max: int = 255
    refresh_every: int = 1 << 20
    prefetch: Table = Table(65536)
    #: Whether lines enter the prefetch cache as they are stored, too.
    prefetch_stored: bool = False
    lines: int = (16 << 30) // LINE
    read_nj: float = 1.49
    write_nj: float = 6.75
    pad_nj: float = 5.9

    def keys(self) -> dict[str, bool | int | str]:
        """The same as overrides of the simulator's keys."""
        return UNTIMED | {
            "encryption.counter_cache.bytes": self.counters.size,
            "encryption.counter_cache.ways": self.counters.ways,
            "esd.amt_bytes": self.amt.size,
            "esd.amt_ways": self.amt.ways,
            "esd.efit_bytes": self.efit.size,
            "esd.efit_ways": self.efit.ways,
            "esd.refer_max": self.refer_max,
            "esd.refresh_every": self.refresh_every,
            "fsdedup.refresh_every": self.refresh_every,
            "fsdedup.prefetch_bytes": self.prefetch.size,
            "fsdedup.prefetch_ways": self.prefetch.ways,
            "fsdedup.fill": "stored" if self.prefetch_stored else "compared",
        }


def read_trace(path: Path, limit: int) -> list[Record]:
    """Reads (0) and writes (1 to 3) of a trace's first records (trace-format.md, "Columns").

    Lines are numbered by first touch of their pages of 4 KB, as in traces whose addresses are not
    physical (trace-format.md, ``address_space``).
    """
    rows = pq.read_table(path).slice(0, limit)
    pages: dict[int, int] = {}
    records = []
    for op, line, data in zip(
        *(rows[name].to_pylist() for name in ("op", "line", "data")), strict=True
    ):
        if op <= 3:
            page = pages.setdefault(line // PAGE_LINES, len(pages))
            records.append(Record(op > 0, page * PAGE_LINES + line % PAGE_LINES, data))
    return records


def check_words(contents: Sequence[bytes]) -> list[int]:
    """The eight check bytes of each content as a number, the first word's lowest.

    Hamming (127,120) cut to 64 data bits: data bits lie at the positions that are no powers of two,
    and check i is the parity of those whose position has bit i. Bit 7 is the parity of the data and
    the seven checks (ecc.md).
    """
    positions = [place for place in range(1, 128) if place & (place - 1)][:64]
    columns = [place | ((place.bit_count() + 1) % 2) << 7 for place in positions]
    words = np.frombuffer(b"".join(contents), dtype=np.uint8).reshape(-1, 8, 8)
    bits = np.unpackbits(words, axis=2, bitorder="little")
    checks = np.bitwise_xor.reduce(bits * np.array(columns, dtype=np.uint8), axis=2)
    return [int(number) for number in np.ascontiguousarray(checks).view("<u8")[:, 0]]


class Cache:
    """A cache of lines in the medium: least recently used, written back when it evicts.

    A write-back writes the words of eight bytes that have changed: the simulator's choice.
    """

    def __init__(self, table: Table) -> None:
        """Empty, as the tables of a run begin (past.md, "A steady state")."""
        number = table.size // LINE // table.ways
        self.sets: list[OrderedDict[int, set[int]]] = [OrderedDict() for _ in range(number)]
        self.ways = table.ways
        self.lookups = 0
        self.bytes_written = 0
        self.counts: Counter[str] = Counter()

    def touch(self, line: int, cause: str, changed: range | None = None) -> None:
        """Look a line up for a cause; ``changed`` are the bytes of it that change."""
        self.lookups += 1
        lines = self.sets[line % len(self.sets)]
        if line in lines:
            lines.move_to_end(line)
        else:
            self.counts[f"{cause}.medium_reads"] += 1
            if len(lines) == self.ways:
                _, words = lines.popitem(last=False)
                self.counts[f"{cause}.medium_writes"] += bool(words)
                self.bytes_written += WORD * len(words)
            lines[line] = set()
        if changed is not None:
            lines[line].update(each // WORD for each in changed)

    @property
    def hit_rate(self) -> float:
        """The share of look-ups that hit."""
        misses = sum(number for name, number in self.counts.items() if name.endswith("reads"))
        return 1 - misses / self.lookups


def booked(counts: Counter[str], pads: int, machine: Machine) -> Figures:
    """Counts with the energy by cause: accesses and pads times what each takes (keys.md)."""
    figures: Figures = dict(counts)
    for cause in {name.partition(".")[0] for name in counts if "." in name}:
        for kind in ("medium_reads", "medium_writes"):
            figures.setdefault(f"{cause}.{kind}", 0)
        energy = figures[f"{cause}.medium_reads"] * machine.read_nj
        figures[f"{cause}.energy_nj"] = (
            energy + figures[f"{cause}.medium_writes"] * machine.write_nj
        )
    if pads:
        figures["encryption.energy_nj"] = pads * machine.pad_nj
    figures["energy_units_nj"] = pads * machine.pad_nj
    figures["energy_nj"] = sum(v for name, v in figures.items() if name.endswith(".energy_nj"))
    for kind in ("medium_reads", "medium_writes"):
        figures[kind] = sum(v for name, v in figures.items() if name.endswith(f".{kind}"))
    figures["requests"] = counts["reads"] + counts["writes"]
    return figures


def marks(before: int, writes: int) -> int:
    """Marks that stay ahead of the global counter, one every ``mark_stride`` / 2 writes.

    SCA's policies draw from that counter (designs.md, "Counter mode"). The first write of a memory
    needs the first mark: the simulator's choice.
    """
    half = 4096 // 2
    return -(-(before + writes) // half) + -before // half


def look_up_counter(cache: Cache, place: int, changed: bool) -> None:
    """Look the counter of a place up, which may be changed."""
    at = place % COUNTERS * WORD
    cache.touch(place // COUNTERS, "counter", range(at, at + WORD) if changed else None)


def identity(records: Iterable[Record], policy: str, machine: Machine) -> Figures:
    """A design that leaves lines where they are, on a trace, whose writes are not counter-atomic.

    Every read and write takes a pad, those of lines that the run has not written too (past.md), and
    looks its counter up (designs.md, "Counter mode"), except ``co-located`` (72 bytes in one burst,
    SCA Sec. 3.2.1) and ``no-encryption``. ``fca`` writes each counter with its line (Sec. 3.2.2);
    ``sca`` and ``per-line`` leave it to the cache, which evicts it.
    """
    cache = Cache(machine.counters)
    counts: Counter[str] = Counter()
    held: set[int] = set()
    for writes, line, data in records:
        counts["writes" if writes else "reads"] += 1
        if data is not None:
            held.add(line)
        if policy in ("per-line", "sca", "fca"):
            look_up_counter(cache, line, changed=writes and policy != "fca")
    counts["data.medium_reads"] = counts["reads"]
    counts["data.medium_writes"] = counts["data_writes"] = counts["writes"]
    ahead = marks(0, counts["writes"]) if policy in ("co-located", "fca", "sca") else 0
    beside = counts["writes"] if policy in ("co-located", "fca") else 0
    counts["counter.medium_writes"] += ahead + (beside if policy == "fca" else 0)
    pads = 0 if policy == "no-encryption" else counts["reads"] + counts["writes"]
    figures = booked(counts + cache.counts, pads, machine)
    figures["medium_write_bytes"] = (
        LINE * counts["writes"] + WORD * (beside + ahead) + cache.bytes_written
    )
    if pads:
        figures["counter_bytes"] = WORD * len(held)
    if cache.lookups:
        figures["counter_cache_hit_rate"] = cache.hit_rate
    return figures


@dataclass
class Entry:
    """An entry of EFIT: where its content lies, and how often it was found (ESD Fig. 7)."""

    place: int
    refer: int = 1
    found: int = 0


@dataclass
class Esd:
    """ESD's tables (Sec. III-B), and what they do at a read and at a write; or FSDedup's.

    FSDedup compares with lines that it keeps in clear on chip, and its refresh halves ``referH`` of
    entries that were not found since the last one (rivals.md, "FSDedup").
    """

    machine: Machine
    keeps: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    #: Where each line lies, what each place holds, how many lines lie there: one byte.
    places: dict[int, int] = field(default_factory=dict)
    contents: dict[int, bytes | None] = field(default_factory=dict)
    references: Counter[int] = field(default_factory=Counter)
    full: set[int] = field(default_factory=set)
    free: OrderedDict[int, None] = field(default_factory=OrderedDict)
    #: Check words by the places whose contents EFIT knows.
    known: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """EFIT and both caches begin empty: EFIT has forgotten the past (past.md)."""
        size = self.machine.efit
        number = max(1, size.size // EFIT_ENTRY // size.ways)
        self.efit: list[OrderedDict[int, Entry]] = [OrderedDict() for _ in range(number)]
        self.amt = Cache(self.machine.amt)
        self.counters = Cache(self.machine.counters)
        self.top = self.machine.lines
        sets = self.machine.prefetch.size // LINE // self.machine.prefetch.ways
        self.kept: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]

    def read(self, line: int, data: bytes | None) -> None:
        """Mapping, counter, line, pad. A line from before lies at a place of its own (past.md)."""
        self.counts["reads"] += 1
        self.amt.touch(line // AMT_LINES, "mapping")
        if line not in self.places and data is not None:
            self.map(line, line, data)
        self.fetch(self.places.get(line, line), "data")

    def fetch(self, place: int, cause: str) -> None:
        """Read a place for a cause and decrypt it."""
        self.counts[f"{cause}.medium_reads"] += 1
        self.counts["pads"] += 1
        look_up_counter(self.counters, place, changed=False)

    def write(self, line: int, data: bytes, word: int) -> None:
        """Sec. III-C and III-D: look up, compare, share the place or store; then update the AMT.

        The AMT has the line's mapping, the count of its new place and that of its old one
        (``reclaim``), in this order; no counts change for a line that stays where it is: the
        simulator's choice.
        """
        self.counts["writes"] += 1
        old = self.places.get(line)
        entry = self.search(word)
        duplicate = entry is not None and self.same(entry, word, data)
        if entry is not None and duplicate:
            self.counts["duplicate_writes"] += 1
            entry.refer += 1
            place = entry.place
        else:
            place = self.store(line)
        at = line % AMT_LINES * AMT_ENTRY
        moved = range(at, at + MAPPING) if place != old else None
        self.amt.touch(line // AMT_LINES, "mapping", moved)
        if place == old:
            return
        self.map(line, place, data)
        self.count(place)
        if not duplicate:
            self.learn(word, entry, place)
        if old is not None:
            self.count(old)
            self.release(old)

    def count(self, place: int) -> None:
        """Change the count of a place in the AMT."""
        at = place % AMT_LINES * AMT_ENTRY + MAPPING
        self.amt.touch(place // AMT_LINES, "reclaim", range(at, at + 1))

    def search(self, word: int) -> Entry | None:
        """Look up in EFIT; every ``refresh_every`` look-ups all ``referH`` lose 1 (Sec. III-D)."""
        self.counts["efit_lookups"] += 1
        entry = self.efit[word % len(self.efit)].get(word)
        self.counts["efit_hits"] += entry is not None
        if self.counts["efit_lookups"] % self.machine.refresh_every == 0:
            last = self.counts["efit_lookups"] - self.machine.refresh_every
            for each in (each for entries in self.efit for each in entries.values()):
                if not self.keeps:
                    each.refer = max(0, each.refer - 1)
                elif each.found < last:
                    each.refer //= 2
        return entry

    def same(self, entry: Entry, word: int, data: bytes) -> bool:
        """Compare byte by byte unless ``referH`` is at its limit (Sec. III-D).

        Only an equal content makes an entry the latest of its set: the simulator's choice.
        """
        if entry.refer >= self.machine.refer_max:
            self.counts["saturated_rewrites"] += 1
            return False
        if not self.keeps:
            self.fetch(entry.place, "compare")
        elif not self.is_kept(entry.place):
            self.fetch(entry.place, "compare")
            self.keep(entry.place)
        if self.contents[entry.place] != data:
            self.counts["collisions"] += 1
            return False
        self.efit[word % len(self.efit)].move_to_end(word)
        entry.found = self.counts["efit_lookups"]
        return True

    def is_kept(self, place: int) -> bool:
        """Whether a place's line is on chip, for a comparison."""
        kept = self.kept[place % len(self.kept)]
        self.counts["prefetch_lookups"] += 1
        self.counts["prefetch_hits"] += place in kept
        if place in kept:
            kept.move_to_end(place)
        return place in kept

    def keep(self, place: int) -> None:
        """Keep a place's line on chip; the one that was compared longest ago leaves."""
        kept = self.kept[place % len(self.kept)]
        if len(kept) == self.machine.prefetch.ways:
            kept.popitem(last=False)
        kept[place] = None

    def store(self, line: int) -> int:
        """Write a line: to its own place, else the one freed first, else from the top down.

        (designs.md, "What all share".) The old place is not free before the write is over.
        """
        place = self.freed() if self.references[line] else line
        self.counts["data.medium_writes"] += 1
        self.counts["pads"] += 1
        look_up_counter(self.counters, place, changed=True)
        self.kept[place % len(self.kept)].pop(place, None)
        return place

    def freed(self) -> int:
        """The place freed first.

        A place that its own line takes keeps its turn, should it be free again when that comes: the
        simulator's choice.
        """
        while self.free:
            place, _ = self.free.popitem(last=False)
            if self.references[place] == 0:
                return place
        self.top -= 1
        return self.top

    def learn(self, word: int, entry: Entry | None, place: int) -> None:
        """Put a stored content into EFIT.

        An entry at its limit moves to the new copy, one with another content stays
        (``esd.collision``). A full set gives up the lowest ``referH``, the oldest of those (LRCU).
        """
        entries = self.efit[word % len(self.efit)]
        if entry is not None:
            if entry.refer < self.machine.refer_max:
                return
            self.known.pop(entry.place, None)
        elif len(entries) == self.machine.efit.ways:
            victim = min(entries, key=lambda each: entries[each].refer)
            self.known.pop(entries.pop(victim).place, None)
        entries[word] = Entry(place, found=self.counts["efit_lookups"])
        if self.machine.prefetch_stored:
            self.keep(place)
        entries.move_to_end(word)
        self.known[place] = word

    def map(self, line: int, place: int, data: bytes | None) -> None:
        """A line lies at a place from now on; a full count never falls again (leaked_lines)."""
        self.places[line] = place
        self.contents[place] = data
        self.references[place] += 1
        if self.references[place] >= 255:
            self.full.add(place)

    def release(self, place: int) -> None:
        """One line less lies at a place; EFIT forgets a free one at once (``esd.forget``)."""
        if place in self.full:
            return
        self.references[place] -= 1
        if self.references[place] == 0:
            word = self.known.pop(place, None)
            if word is not None:
                del self.efit[word % len(self.efit)][word]
            self.free.setdefault(place)


def esd(records: Sequence[Record], machine: Machine, keeps: bool = False) -> Figures:
    """ESD with its mappings and counters behind caches (Sec. III), over ``per-line`` counters.

    With ``keeps`` it is FSDedup.
    """
    state = Esd(machine, keeps)
    words = iter(check_words([record.data or bytes(LINE) for record in records if record.writes]))
    for writes, line, data in records:
        if writes:
            state.write(line, data or bytes(LINE), next(words))
        else:
            state.read(line, data)
    counts = state.counts
    pads, hits = counts.pop("pads"), counts.pop("efit_hits")
    compared, on_chip = counts.pop("prefetch_lookups", 0), counts.pop("prefetch_hits", 0)
    counts["data_writes"] = counts["data.medium_writes"]
    figures = booked(counts + state.amt.counts + state.counters.counts, pads, machine)
    figures |= {
        "write_reduction": counts["duplicate_writes"] / counts["writes"],
        "leaked_lines": len(state.full),
        "metadata_bytes": LINE / AMT_LINES * len(state.places),
        "metadata_bytes_in_use": MAPPING * len(state.places) + len(+state.references),
        "counter_bytes": WORD * len(state.contents),
        "efit_hit_rate": hits / counts["efit_lookups"],
        "amt_hit_rate": state.amt.hit_rate,
        "counter_cache_hit_rate": state.counters.hit_rate,
        "medium_write_bytes": LINE * counts["data_writes"]
        + state.amt.bytes_written
        + state.counters.bytes_written,
    }
    if compared:
        figures["prefetch_hit_rate"] = on_chip / compared
    return figures
