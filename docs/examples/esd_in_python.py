"""ESD (HPCA 2023) as a class: every figure is that of the design ``esd``, whose keys it shares."""

import sardonyx
from sardonyx import Stored, check_bits


@sardonyx.mapping("esd-in-python", over="per-line", like="esd", beside="its ECC")
class Esd:
    """Duplicates are found by the memory's own check bits, looked up on chip only."""

    def __init__(self, memory):
        self.below, self.entries = memory.below, memory.fingerprints()
        self.table, self.places = memory.mapping("esd.amt"), memory.places()
        self.flush, self.persist, self.leaked = self.table.flush, self.table.persist_around, 0
        self.forget()

    def read(self, line, after, plan, is_log):
        return self.table.read(line, after, plan, is_log)

    def write(self, write, plan):
        entry = self.table.find(write.line, write.at, plan)
        same, decided, enter = self.search(write, plan)
        if same is not None:
            ripe = plan.all(decided, write.gate)
            return self.remap(entry, same, False, decided, ripe, write.atomic, plan)
        free = self.places.allocate(write.line, plan)
        if free is None and entry.place is not None:
            plan.exercise("writes to a full medium")
            self.leave(entry.place, decided, decided, plan)
            free = self.places.allocate(write.line, plan)
            entry = self.table.give_up(entry, decided, plan)
        place, unmapped = free or plan.full(write.line, "give the machine more rows")
        below = write.to(place, at=decided, gate=plan.all(write.gate, unmapped))
        kept = self.below.write(below, plan)
        if enter is not None and enter(place, decided):
            plan.exercise("entries that leave EFIT")
        mapped = self.remap(entry, place, True, decided, kept.accepted, write.atomic, plan)
        return Stored(mapped.accepted, plan.all(kept.done, mapped.done))

    def search(self, write, plan):
        """Where the same line lies; when that is known; how to enter a line that lies nowhere."""
        if write.is_log:
            return None, write.at, None
        check, known = check_bits(write.data), plan.unit("fingerprints", write.at)
        if self.entries.tick():
            plan.exercise("refreshes of EFIT")
        entry, last, full = self.entries.find(check), None, None
        self.lookups, self.hits = self.lookups + 1, self.hits + (entry is not None)
        while entry is not None:
            if entry.refer == 255:
                full = entry
            else:
                with plan.because("compare"):
                    data, at = self.below.read(entry.place, plan.all(known, entry.at), plan)
                    known = plan.unit("compare", at)
                if data == write.data:
                    self.entries.refer(entry)
                    self.duplicates += 1
                    plan.exercise("duplicates")
                    return entry.place, known, None
                self.collisions, last = self.collisions + 1, entry
                plan.exercise("collisions")
            entry = self.entries.find(check, entry)
        if full is not None:
            self.rewrites += 1
            plan.exercise("duplicates beyond a full referH")
            return None, known, lambda place, at: self.entries.replace(full, place, at)
        new = None if last else lambda place, at: self.entries.insert(check, place, at)
        return None, known, new

    def remap(self, entry, place, fresh, decided, ripe, atomic, plan):
        with plan.because("mapping"):
            ripe = plan.all(entry.at, ripe)
        if entry.place == place and not fresh:
            plan.exercise("duplicates of a line's own content")
            return self.table.persist(entry, Stored(ripe), atomic, plan)
        self.table.set(entry, place, decided, ripe, plan)
        self.leaked += self.table.refer(place, decided, ripe, plan, first=fresh)
        stored = self.table.persist(entry, Stored(ripe), atomic, plan)
        if entry.place is not None:
            self.leave(entry.place, decided, stored.accepted, plan)
        return stored

    def leave(self, place, decided, unmapped, plan):
        left = self.table.unrefer(place, decided, unmapped, plan)
        if left is not None and self.places.leave(place, left, unmapped, plan):
            self.entries.forget(place)

    def recover(self, plan):
        self.table.recover(self.places, plan)

    def forget(self):
        self.lookups = self.hits = self.duplicates = self.collisions = self.rewrites = 0
        self.table.forget()

    def figures(self):
        return self.table.figures() | {
            "duplicate_writes": self.duplicates, "efit_lookups": self.lookups,
            "efit_hit_rate": (self.hits, self.lookups), "collisions": self.collisions,
            "saturated_rewrites": self.rewrites, "leaked_lines": self.leaked,
            "metadata_bytes_in_use": 5 * self.table.mapped + self.places.in_use,
        }  # fmt: skip
