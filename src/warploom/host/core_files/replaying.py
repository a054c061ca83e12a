"""Runs the launch of a core file again, as often as wanted: on its device or another, counted,
timed, traced or checked. Memory is each time as it was before the launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.lazy import cached_property
from warploom.core.source import Text
from warploom.core.source_files import provide_sources
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.host.arguments import Arguments
from warploom.host.buffer import Buffer
from warploom.host.context import Context, schedule_of
from warploom.host.core_files.format import Core
from warploom.host.core_files.opening import OpenedCore, open_core
from warploom.host.device import with_warps_of
from warploom.host.engines import choose_engine
from warploom.host.kernel import Kernel
from warploom.host.launch_options import LaunchOptions
from warploom.host.launcher import Launcher
from warploom.host.programs.signatures import signature_of
from warploom.host.requests import Prepared
from warploom.machine.launch import ORDERS, Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.snapshots import MemorySnapshots

BYTES = np.dtype(np.uint8)


class ReplayDevice(TypedDict, total=False):
    """Options of the device that runs a saved launch; they mean what those of `Device` do, and are
    those of the saved device where they are left out."""

    device: str | None
    engine: str | None
    l1_global: bool | None
    bank_bytes: int | None
    caches: bool
    schedule: str | None
    seed: int
    order: str
    workers: int | None
    record: bool
    sampled: bool
    quiet: bool


@dataclass(frozen=True)
class ReplayLauncher(Launcher):
    """A launcher whose arguments are known: those of the launch that is saved in `file`, as its
    parameter block."""

    file: Path
    parameters: bytes

    def _pack(self, args: tuple[Any, ...], options: LaunchOptions) -> Arguments:
        return Arguments(bytearray(self.parameters))


class SavedLaunch:
    """The launch of a core file, with memory of its own at the addresses that it had."""

    def __init__(self, file: Path) -> None:
        """Opens the file. Raises what `open_core` does."""
        self.file = file
        self._opened: OpenedCore = open_core(file)
        provide_sources(self._opened.sources)
        self._snapshots = MemorySnapshots(self.memory, allocates=True, constants=True)
        self._before = self._snapshots.capture()
        self._unwritten = {at: bits.copy() for at, bits in self.memory.unwritten.items()}
        self._textures = self.memory.textures.rows

    @property
    def core(self) -> Core:
        """Returns what the file says."""
        return self._opened.core

    @property
    def launch(self) -> Launch:
        """Returns the launch as it was."""
        return self._opened.launch

    @property
    def memory(self) -> DeviceMemory:
        """Returns the memory that launches run on."""
        return self._opened.kernel.context.memory

    @property
    def options(self) -> LaunchOptions:
        """Returns the options of the launch itself."""
        launch = self.core.launch
        return {
            "max_instructions": launch.max_instructions,
            "cooperative": launch.cooperative,
            "cluster_dims": launch.cluster if launch.explicit_cluster else None,
            "interrupts": launch.interrupts,
            "nd_range": launch.nd_range,
        }

    def rewind(self) -> None:
        """Restores memory to what it was before the launch."""
        self._snapshots.restore(self._before)
        self.memory.unwritten.clear()
        self.memory.unwritten.update({at: bits.copy() for at, bits in self._unwritten.items()})
        self.memory.textures.rows = self._textures

    def ready(self, **given: Unpack[ReplayDevice]) -> Prepared:
        """Rewinds, and returns what launches again: on the saved device with other options, or on
        another. Raises WarploomError for what no such device has."""
        self.rewind()
        kernel = self._kernel(given)
        launch = self.launch
        shape = launch.grid, launch.block, None, launch.dynamic_shared_bytes
        launcher = ReplayLauncher(kernel, *shape, self.file, launch.parameters)
        return Prepared(launcher, [], self.buffers)

    def _kernel(self, given: ReplayDevice) -> Kernel:
        """Returns the kernel on a device with those options."""
        opened, saved = self._opened.kernel, self.core.device
        name, spec = given.get("device"), opened.context.spec
        if name is not None:
            spec = with_warps_of(find_device(name), saved.warp_size)
        options = _memory_options(opened.context.options, given)
        access_rules(spec, options)  # raises where the device does not have these
        record, engine = bool(given.get("record")), choose_engine(given.get("engine"), spec)
        if record and engine != "compiled":
            raise WarploomError("only the compiled engine can record launches for timing")
        context = Context(
            spec,
            options,
            engine,
            self._schedule(spec, given),
            given.get("workers"),
            _discard if given.get("quiet") else None,
            saved.stack_bytes,
            self.memory,
            record=record,
            sampled=bool(given.get("sampled")),
        )
        loaded = context, opened.program.module, opened.image, opened.name
        return Kernel(*loaded, self._source, opened.terms)

    @cached_property
    def _source(self) -> Text:
        """Returns the source of the kernel: the file that its first line is in, as the modules of
        programs are PTX; else what was compiled."""
        opened, place = self._opened, self._opened.kernel.program.instructions[0].location
        if place is None or place.file not in opened.sources:
            return opened.kernel.source
        return Text(place.file, opened.sources[place.file])

    def _schedule(self, spec: DeviceSpec, given: ReplayDevice) -> Schedule:
        """Returns the schedule that is wanted, else that of the saved launch."""
        saved, policy = self.core.launch, given.get("schedule")
        named = (saved.policy, saved.seed) if policy is None else (policy, given.get("seed", 0))
        return schedule_of(spec, *named, given.get("order", ORDERS[0]))

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """Returns the allocations that the launch can write, by the names of the parameters that
        point to them, with the types that the source declares; others as bytes. Variables of the
        module are among them."""
        named = self._pointed_to()
        for variable, address in self.core.memory.variables.items():
            named.setdefault(address, (variable, BYTES))
        order = {address: number for number, address in enumerate(named)}
        writable = [each for each in self.core.memory.allocations if each.size > 0]
        writable = [each for each in writable if not each.constant]
        found: dict[str, Buffer] = {}
        for each in sorted(writable, key=lambda each: order.get(each.address, len(order))):
            name, dtype = named.get(each.address, (each.name, BYTES))
            name = f"{name} at {each.address:#x}" if name in found else name
            dtype = dtype if each.size >= dtype.itemsize else BYTES
            found[name] = Buffer.over(self.memory, each.address, dtype, name)
        return found

    def _pointed_to(self) -> dict[int, tuple[str, np.dtype[Any]]]:
        """Returns the parameters that are pointers, as far as the source says which, by their
        values: names and types of elements."""
        kernel, found = self._opened.kernel, dict[int, tuple[str, np.dtype[Any]]]()
        module, parameters = kernel.program.module, kernel.function.parameters
        signature = signature_of(kernel.name, parameters, self._source.content, module.text)
        declared = zip(parameters, signature, strict=True)
        for number, (parameter, source) in enumerate(declared):
            if source.type is None or not source.type.pointers:
                continue
            start = kernel.program.slots[parameter.name].offset
            data = self.launch.parameters[start : start + parameter.size]
            element = source.type.element
            dtype = BYTES if element.raw or source.type.pointers > 1 else element.dtype
            name = source.name or f"argument {number}"
            found.setdefault(int.from_bytes(data, "little"), (name, dtype))
        return found


@cache
def saved_launch(file: Path) -> SavedLaunch:
    """Returns the launch of a core file, opened once in a process: its addresses are taken then.
    Raises what `open_core` does."""
    return SavedLaunch(file)


def _memory_options(saved: MemoryOptions, given: ReplayDevice) -> MemoryOptions:
    """Returns the options of memory that are wanted, else those of the saved device."""
    l1, banks = given.get("l1_global"), given.get("bank_bytes")
    return MemoryOptions(
        saved.l1_global if l1 is None else l1,
        saved.bank_bytes if banks is None else banks,
        bool(given.get("caches")) or saved.caches,
    )


def _discard(text: str) -> None:
    """Takes what a kernel prints, which was printed when it first ran."""
