from m5.objects.AbstractMemory import AbstractMemory
from m5.params import *


class SardonyxMemory(AbstractMemory):
    """A memory of Sardonyx's: any machine and design, with the bytes of gem5's packets."""

    type = "SardonyxMemory"
    cxx_header = "sardonyx_memory.hh"
    cxx_class = "gem5::memory::SardonyxMemory"

    port = ResponsePort("port to the crossbar or the cache above")
    machine = Param.String("esd", "a preset of Sardonyx's, or a machine file")
    design = Param.String("esd", "a design: esd, sca, LOGGING/MAPPING+POLICY@INTEGRITY")
    settings = VectorParam.String([], "KEY=VALUE: the machine's keys and host.* (docs/hosts/simulators.md)")
    figures = Param.String("sardonyx.json", "the figures, in gem5's output folder")
