from m5.objects.AbstractMemory import AbstractMemory
from m5.params import *
from m5.util import fatal
from m5.util.pybind import PyBindMethod


class SardonyxMemory(AbstractMemory):
    """A memory of Sardonyx's: any machine and design, with the bytes of gem5's packets."""

    type = "SardonyxMemory"
    cxx_header = "sardonyx_memory.hh"
    cxx_class = "gem5::memory::SardonyxMemory"
    # powerCut(platform, seed) and recover() -> (lines kept, lines lost), after m5.simulate has returned; they need the
    # setting host.power_cut=yes. recover() leaves the bytes that survived in gem5's own store.
    cxx_exports = [PyBindMethod("powerCut"), PyBindMethod("recover")]

    port = ResponsePort("port to the crossbar or the cache above")
    machine = Param.String("esd", "a preset of Sardonyx's, or a machine file")
    design = Param.String("esd", "a design: esd, sca, LOGGING/MAPPING+POLICY@INTEGRITY")
    settings = VectorParam.String([], "KEY=VALUE: the machine's keys and host.* (docs/hosts/simulators.md)")
    figures = Param.String("", "file for the figures, in gem5's output folder; empty: this memory's name and .json")
    cleans = Param.Bool(True, "a clwb may come, and is answered when its line is persistent")
    counter_atomic = VectorParam.AddrRange([], "writes here persist together with their encryption counters")
    atomic_latency = Param.Latency("50ns", "of an access in atomic mode, which Sardonyx does not time (assumed)")

    def getCCParams(self):
        if self.cleans:
            self._check_cleans()
        return AbstractMemory.getCCParams(self)

    # What is above, up to the cores: a crossbar that is the point of coherency and Ruby answer a clwb by themselves,
    # however many monitors, bridges and caches lie between it and this memory.
    def _check_cleans(self):
        ports, seen = [self.port], set()
        while ports:
            peer = ports.pop().peer
            if peer is None or peer.simobj.path() in seen:
                continue
            above = peer.simobj
            seen.add(above.path())
            is_ruby = any(kind.__name__ == "RubyController" for kind in type(above).__mro__)
            if is_ruby or getattr(above, "point_of_coherency", False):
                remedy = "" if is_ruby else f"set {above.path()}.point_of_coherency = False, or "
                fatal(
                    f"{self.path()}: {above.path()} answers a clwb before its line is persistent; {remedy}set this "
                    "memory's cleans = False if nothing here sends a clwb"
                )
            for ref in above._port_refs.values():
                ports += [port for port in getattr(ref, "elements", [ref]) if not port.is_source]
