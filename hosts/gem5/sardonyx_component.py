"""Sardonyx as a memory of gem5's standard library: SardonyxSystem(machine="esd", design="esd", size="1GiB")."""

from collections.abc import Sequence

from gem5.components.boards.abstract_board import AbstractBoard
from gem5.components.memory.abstract_memory_system import AbstractMemorySystem
from gem5.utils.override import overrides
from m5.objects import AddrRange, Port, SardonyxMemory
from m5.util.convert import toMemorySize


class SardonyxSystem(AbstractMemorySystem):
    """One memory of Sardonyx's, whatever channels its machine has, with the whole range."""

    def __init__(self, machine: str, design: str, size: str, settings: Sequence[str] = (), **params: object) -> None:
        super().__init__()
        self._size = toMemorySize(size)
        self.memory = SardonyxMemory(machine=machine, design=design, settings=list(settings), **params)

    @overrides(AbstractMemorySystem)
    def incorporate_memory(self, board: AbstractBoard) -> None:
        """The crossbar above passes cleans on, so that this memory answers them."""
        membus = getattr(board.get_cache_hierarchy(), "membus", None)
        if membus is not None:
            membus.point_of_coherency = False

    @overrides(AbstractMemorySystem)
    def get_mem_ports(self) -> Sequence[tuple[AddrRange, Port]]:
        return [(self.memory.range, self.memory.port)]

    @overrides(AbstractMemorySystem)
    def get_memory_controllers(self) -> list[SardonyxMemory]:
        return [self.memory]

    @overrides(AbstractMemorySystem)
    def get_size(self) -> int:
        return self._size

    @overrides(AbstractMemorySystem)
    def set_memory_range(self, ranges: list[AddrRange]) -> None:
        if len(ranges) != 1 or ranges[0].size() != self._size:
            raise ValueError(f"one range of {self._size} bytes is needed; the board has {ranges}")
        self.memory.range = ranges[0]

    @overrides(AbstractMemorySystem)
    def get_uninterleaved_range(self) -> list[AddrRange]:
        return [self.memory.range]
