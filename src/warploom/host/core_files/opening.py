"""Makes a launch of a core file again: its kernel, its memory at the same addresses, its options.

Pointers lie in memory as numbers like any others; so memory has to be where it was.
Nothing that the process has is overwritten: where an address is in use, opening fails.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from warploom.core.errors import Allocation, WarploomError
from warploom.core.input_files import Archive, InputFileError, reading
from warploom.core.source import Text
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.host.context import Context, schedule_of
from warploom.host.core_files.checks import check_addresses, check_gaps, check_textures
from warploom.host.core_files.format import (
    HIGHEST,
    Core,
    CoreAllocation,
    CoreLaunch,
    CoreMemory,
    read_head,
)
from warploom.host.device import with_warps_of
from warploom.host.engines import choose_engine
from warploom.host.loaded import LoadedKernel
from warploom.host.prepare import Configuration, prepare
from warploom.machine.launch import Launch
from warploom.machine.memory.allocation_table import MemoryState
from warploom.machine.memory.device_memory import WRITTEN_BITS, DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.memory.reservation import Reservation
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

SPARE_BYTES = 1 << 20
"""Bytes that are reserved after the last allocation and the heap."""

REMEDY = "Save it again: `--core FILE` writes a core file when a launch fails"


@dataclass(frozen=True)
class OpenedCore:
    """The launch of a core file, about to begin. `sources` are texts by the names of files."""

    core: Core
    kernel: LoadedKernel
    launch: Launch
    sources: dict[str, str]


def open_core(file: Path) -> OpenedCore:
    """Returns the launch of a core file. Raises WarploomError for a file that cannot be read, that
    this version does not know, or whose addresses are in use here."""
    with reading(file, "is not a Warploom core file", REMEDY), ZipFile(file) as archive:
        members = Archive(archive)
        core = read_head(members, file)
        opening = _Opening(file, core, members)
        try:
            return opening.opened()
        except InputFileError:
            raise
        except WarploomError as error:
            raise opening.refused(str(error)) from None


@dataclass(frozen=True)
class _Opening:
    file: Path
    core: Core
    archive: Archive

    def opened(self) -> OpenedCore:
        core, device = self.core, self.core.device
        module = parse(self.archive.text("kernel.ptx"), core.module, device.warp_size)
        verify(module)
        if all(entry.name != core.kernel for entry in module.entries):
            raise self.refused(f"its program has no kernel {core.kernel}")
        spec = with_warps_of(find_device(device.name), device.warp_size)
        options = MemoryOptions(device.l1_global, device.bank_bytes, device.caches)
        access_rules(spec, options)  # raises where the device does not have these
        check_gaps(core.memory)
        check_textures(core.memory)
        memory = self._memory(core.memory)
        context = Context(
            spec,
            options,
            choose_engine(device.engine, spec),
            schedule_of(spec, core.launch.policy, core.launch.seed),
            stack_bytes=device.stack_bytes,
            memory=memory,
        )
        image = ModuleGlobals(module, memory, core.memory.variables)
        sources = dict(self._sources())
        source = Text(core.source, sources.get(core.source, ""))
        kernel = LoadedKernel(context, module, image, core.kernel, source, core.terms)
        return OpenedCore(core, kernel, self._launch(core.launch, kernel), sources)

    def refused(self, reason: str) -> InputFileError:
        """Returns the error for a file whose values do not fit together."""
        return InputFileError(f"{self.file} cannot be opened: {reason}")

    def _sources(self) -> Iterator[tuple[str, str]]:
        for number, name in enumerate(self.core.sources):
            yield name, self.archive.text(f"sources/{number}")

    def _launch(self, given: CoreLaunch, kernel: LoadedKernel) -> Launch:
        """Returns the launch, checked as one that a user makes. Raises WarploomError."""
        check_addresses(self.core, kernel)
        asked = Configuration(
            given.grid,
            given.block,
            given.dynamic_shared_bytes,
            given.max_instructions,
            given.cooperative,
            given.policy,
            given.seed,
            interrupts=frozenset(given.interrupts),
            cluster=given.cluster if given.explicit_cluster else None,
            nd_range=given.nd_range,
        )
        launch = prepare(kernel, asked)
        if launch.cluster != given.cluster:
            raise self.refused(
                f"its cluster size is {given.cluster}, but the kernel has a different cluster size"
            )
        schedule = replace(
            launch.schedule,
            independent=given.independent,
            resident_blocks=given.resident_blocks,
        )
        filled = launch.filled(given.parameters, given.globals, given.grid_workspace)
        return replace(filled, schedule=schedule)

    # ---- memory ---------------------------------------------------------------------------------

    def _memory(self, given: CoreMemory) -> DeviceMemory:
        """Returns memory with the contents that it had."""
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
        """Returns how many bytes to reserve: all that the launch can access."""
        if given.base % mmap.PAGESIZE or not 0 < given.base < HIGHEST - given.capacity:
            raise self.refused(f"its memory is at the invalid address {given.base:#x}")
        before = 0
        for each in sorted(given.allocations, key=lambda each: each.address):
            if each.size < 0 or each.address < before or each.address + each.size > HIGHEST:
                raise self.refused(f"{each.name} is at the invalid address {each.address:#x}")
            before = each.address + each.size
        last = max((each.address + each.size for each in own), default=given.base)
        if any(each.address < given.base for each in own) or last > given.base + given.capacity:
            raise self.refused("an allocation is outside device memory")
        wanted = last - given.base + given.heap_limit + SPARE_BYTES
        return min(given.capacity, -(-wanted // mmap.PAGESIZE) * mmap.PAGESIZE)

    def _fill(self, memory: DeviceMemory, given: CoreAllocation) -> None:
        """Writes the contents of an allocation, and which of its bytes were written."""
        name = f"memory/{given.address:x}"
        if name in self.archive:
            view, at = memory.view(given.address, given.size), 0
            for part in self.archive.parts(name, given.size):
                view[at : at + len(part)] = np.frombuffer(part, np.uint8)
                at += len(part)
        name = f"written/{given.address:x}"
        if name in self.archive:
            size = -(-given.size // WRITTEN_BITS) * 8
            data = b"".join(self.archive.parts(name, size))
            if len(data) != size:
                raise self.refused(f"{given.name} has {given.size} bytes")
            memory.unwritten[given.address] = np.frombuffer(data, np.int64).copy()


def _pages_of(allocations: Iterable[CoreAllocation]) -> list[tuple[int, int]]:
    """Returns the whole pages in which some allocations lie: addresses and sizes, each page
    once."""
    found: list[tuple[int, int]] = []
    for each in sorted(allocations, key=lambda each: each.address):
        start = each.address // mmap.PAGESIZE * mmap.PAGESIZE
        end = -(-(each.address + max(1, each.size)) // mmap.PAGESIZE) * mmap.PAGESIZE
        if found and start <= found[-1][0] + found[-1][1]:
            start, size = found.pop()
            end = max(end, start + size)
        found.append((start, end - start))
    return found
