"""Lines of zeros as one bit each: the worked example of docs/simulator/design-in-python.md."""

import sardonyx

ZEROS = bytes(64)


@sardonyx.mapping(
    "zeros",
    over="sca",
    source="after zero-content elimination (Dusser et al., ICS 2009)",
    caches={"cache": (65536, "cache of the bits")},
    figures={"zero_share": ("ratio", "more", "share of the writes that were lines of zeros")},
    mechanisms={"lines that become zeros": 30, "lines that were zeros": 30},
    placement=("zero-bits", 512),
    zeros_apart=True,
)
class Zeros:
    """Lines of zeros are a bit and never written."""

    def __init__(self, memory):
        self.below = memory.below
        self.bits = memory.table("zero-bits", -(-memory.lines // 512))
        self.cache = memory.cache("zeros.cache")
        self.writes = self.zeros = 0

    @staticmethod
    def place(table, line, entry):
        """Where a line lies, from its line of the table: for whoever reads the medium's bytes."""
        return None if table[entry // 8] >> entry % 8 & 1 else line

    def look(self, line, after, plan):
        with plan.because("mapping"):
            cached = self.cache.get(self.bits.line(line // 512), after, plan)
        byte = self.cache.line(cached)[line % 512 // 8]
        return cached, byte, byte >> line % 8 & 1

    def read(self, line, after, plan, is_log):
        cached, _, is_zero = self.look(line, after, plan)
        if is_zero:
            return ZEROS, cached.at
        return self.below.read(line, cached.at, plan, is_log)

    def write(self, write, plan):
        line = write.line
        cached, byte, was_zero = self.look(line, write.at, plan)
        is_zero = write.data == ZEROS and not write.is_log
        self.writes, self.zeros = self.writes + 1, self.zeros + is_zero
        if is_zero:
            with plan.because("mapping"):
                kept = sardonyx.Stored(plan.all(cached.at, write.gate))
        else:
            kept = self.below.write(write, plan)
        if is_zero == bool(was_zero):
            if not is_zero:
                return kept
        else:
            plan.exercise("lines that become zeros" if is_zero else "lines that were zeros")
        table = self.bits.line(line // 512)
        with plan.because("mapping"):
            # A line that stops being zeros is in the memory before its bit goes, never after.
            ripe = plan.all(cached.at, kept.accepted, self.cache.ripe(cached))
            if is_zero != bool(was_zero):
                new = bytes([byte ^ 1 << line % 8])
                self.cache.set(cached, line % 512 // 8, new, ripe, plan)
            stored = sardonyx.Stored(ripe)
            if write.atomic:
                stored = self.cache.persist(table, ripe, plan)
            return stored.also(sardonyx.Stored(ripe, kept.done), plan)

    def persist(self, line, after, plan):
        with plan.because("mapping"):
            bits = self.cache.persist(self.bits.line(line // 512), after, plan)
        return bits.also(self.below.persist(line, after, plan), plan)

    def flush(self, plan):
        with plan.because("mapping"):
            self.cache.flush(plan)

    def forget(self):
        self.writes = self.zeros = 0
        self.cache.forget()

    def figures(self):
        return {"zero_share": (self.zeros, self.writes)}
