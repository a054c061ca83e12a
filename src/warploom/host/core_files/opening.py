"""Makes a launch of a core file again: its kernel, its memory at the same addresses, its options.

Pointers lie in memory as numbers that nobody can tell from others; so memory has to be where it
was. Nothing that the process has is overwritten: where an address is in use, opening fails.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from warploom.core.errors import Allocation, WarploomError
from warploom.core.source import Text
from warploom.cost.device_rules import MemoryOptions
from warploom.devices.catalog import find_device
from warploom.host.context import Context
from warploom.host.core_files.format import Core, CoreAllocation, CoreLaunch, CoreMemory, read_head
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import POLICIES, Launch, Schedule
from warploom.machine.memory.allocation_table import MemoryState
from warploom.machine.memory.device_memory import DeviceMemory, unwritten_bits
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.memory.reservation import Reservation
from warploom.ptx.parser import parse

SPARE_BYTES = 1 << 20
"""Bytes that are reserved behind the last allocation and the heap."""

HIGHEST = 1 << 47
"""The end of the addresses of a process (x86-64, AArch64 with pages of 4 KiB)."""

PART = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True)
class OpenedCore:
    """The launch of a core file, about to begin. `sources` are texts by the names of files."""

    core: Core
    kernel: LoadedKernel
    launch: Launch
    sources: dict[str, str]


def open_core(file: Path) -> OpenedCore:
    """Return the launch of a core file. Raises WarploomError for a file that cannot be read, that
    this version does not know, or whose addresses are in use here."""
    try:
        with ZipFile(file) as archive:
            core = read_head(archive, file)
            return _Opening(file, core, archive).opened()
    except (BadZipFile, KeyError, EOFError, OSError) as error:
        raise WarploomError(f"{file} is not a core file of Warploom: {error}") from None


@dataclass(frozen=True)
class _Opening:
    file: Path
    core: Core
    archive: ZipFile

    def opened(self) -> OpenedCore:
        core, device = self.core, self.core.device
        module = parse(self.archive.read("kernel.ptx").decode(), core.module, device.warp_size)
        if all(entry.name != core.kernel for entry in module.entries):
            raise self._refused(f"its program has no kernel {core.kernel}")
        memory = self._memory(core.memory)
        schedule = self._schedule(core.launch)
        spec = find_device(device.name)
        if device.warp_size != spec.warp_size:
            spec = spec.with_warps_of(device.warp_size)
        options = MemoryOptions(device.l1_global, device.bank_bytes, device.caches)
        context = Context(
            spec, options, device.engine, schedule, stack_bytes=device.stack_bytes, memory=memory
        )
        image = ModuleGlobals(module, memory, core.memory.variables)
        sources = dict(self._sources())
        source = Text(core.source, sources.get(core.source, ""))
        kernel = LoadedKernel(context, module, image, core.kernel, source, core.terms)
        return OpenedCore(core, kernel, self._launch(core.launch, schedule), sources)

    def _refused(self, reason: str) -> WarploomError:
        return WarploomError(f"{self.file} is not a core file that can be opened: {reason}")

    def _sources(self) -> Iterator[tuple[str, str]]:
        for number, name in enumerate(self.core.sources):
            yield name, self.archive.read(f"sources/{number}").decode()

    def _schedule(self, launch: CoreLaunch) -> Schedule:
        if launch.policy not in POLICIES:
            raise self._refused(f"there is no schedule {launch.policy!r}")
        interrupts = frozenset(launch.interrupts)
        order = launch.independent, launch.resident_blocks
        sms = find_device(self.core.device.name).sms
        return Schedule(launch.policy, launch.seed, *order, interrupts, sms=sms)

    def _launch(self, given: CoreLaunch, schedule: Schedule) -> Launch:
        return Launch(
            given.grid,
            given.block,
            given.parameters,
            given.globals,
            given.dynamic_shared_bytes,
            given.max_instructions,
            schedule,
            cooperative=given.cooperative,
            grid_workspace=given.grid_workspace,
            warp_size=self.core.device.warp_size,
            cluster=given.cluster,
            explicit_cluster=given.explicit_cluster,
        )

    # ---- memory ---------------------------------------------------------------------------------

    def _memory(self, given: CoreMemory) -> DeviceMemory:
        """Return memory with the contents that it had."""
        own = [each for each in given.allocations if not each.lent]
        capacity = self._capacity(given, own)
        memory = DeviceMemory(capacity, given.base)
        end = given.base + capacity
        gaps = ((start, min(stop, end)) for start, stop in given.gaps if start < end)
        constants = frozenset(each.address for each in own if each.constant)
        live = {each.address: Allocation(each.address, each.size, each.name) for each in own}
        memory.restore(MemoryState(live, tuple(gaps), given.heap, constants))
        memory.heap.limit = given.heap_limit
        memory.textures.rows = [list(row) for row in given.textures]
        pages = _pages_of(each for each in given.allocations if each.lent)
        lent = [Reservation(*each) for each in pages]
        for each in given.allocations:
            if each.lent:
                memory.lend(each.address, each.size, lent, each.name)
            self._fill(memory, each)
        return memory

    def _capacity(self, given: CoreMemory, own: list[CoreAllocation]) -> int:
        """Return how many bytes to reserve: all that the launch can access."""
        if given.base % mmap.PAGESIZE or not 0 < given.base < HIGHEST - given.capacity:
            raise self._refused(f"its memory is at {given.base:#x}")
        before = 0
        for each in sorted(given.allocations, key=lambda each: each.address):
            if each.size < 0 or each.address < before or each.address + each.size > HIGHEST:
                raise self._refused(f"{each.name} is at {each.address:#x}")
            before = each.address + each.size
        last = max((each.address + each.size for each in own), default=given.base)
        if any(each.address < given.base for each in own) or last > given.base + given.capacity:
            raise self._refused("an allocation is not in its memory")
        wanted = last - given.base + given.heap_limit + SPARE_BYTES
        return min(given.capacity, -(-wanted // mmap.PAGESIZE) * mmap.PAGESIZE)

    def _fill(self, memory: DeviceMemory, given: CoreAllocation) -> None:
        """Write the contents of an allocation, and which of its bytes were written."""
        name = f"memory/{given.address:x}"
        if name in self.archive.NameToInfo:
            view, at = memory.view(given.address, given.size), 0
            with self.archive.open(name) as entry:
                while part := entry.read(PART):
                    if at + len(part) > given.size:
                        raise self._refused(f"{given.name} has more than {given.size} bytes")
                    view[at : at + len(part)] = np.frombuffer(part, np.uint8)
                    at += len(part)
        name = f"written/{given.address:x}"
        if name in self.archive.NameToInfo:
            bits, data = unwritten_bits(given.size), self.archive.read(name)
            if len(data) != bits.nbytes:
                raise self._refused(f"{given.name} has {given.size} bytes")
            bits[:] = np.frombuffer(data, np.int64)
            memory.unwritten[given.address] = bits


def _pages_of(allocations: Iterable[CoreAllocation]) -> list[tuple[int, int]]:
    """Return the whole pages in which some allocations lie: addresses and sizes, each page once."""
    found: list[tuple[int, int]] = []
    for each in sorted(allocations, key=lambda each: each.address):
        start = each.address // mmap.PAGESIZE * mmap.PAGESIZE
        end = -(-(each.address + max(1, each.size)) // mmap.PAGESIZE) * mmap.PAGESIZE
        if found and start <= found[-1][0] + found[-1][1]:
            start, size = found.pop()
            end = max(end, start + size)
        found.append((start, end - start))
    return found
