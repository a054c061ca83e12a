"""Captures launches of a process: lists all that it makes, and saves some of them as core files.

A process of several writes files of its own, named after its number; `read_captures` reads those of
all. Choosing a launch and running it again is left to the command line.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from warploom.core.errors import Dim3, WarploomError
from warploom.core.mangled import read_symbol
from warploom.core.output_files import write_bytes
from warploom.host.core_files import SUFFIX
from warploom.host.core_files.saving import Cause, Snapshot
from warploom.host.engines import Execute, Progress
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.snapshots import MemorySnapshots
from warploom.machine.tally import Tally
from warploom.observe.counters import Counters
from warploom.program.program import Program


class LaunchEntry(msgspec.Struct, frozen=True):
    """A launch of a program: its number among those of kernels that are wanted, from 1, the kernel
    with its template arguments, its shape, the warp instructions that it executed (None where an
    error ended it), the seconds that the simulation took, and the least seconds on the device,
    modelled from the counts (None where its peaks are not known or an error ended it)."""

    number: int
    kernel: str
    grid: Dim3
    block: Dim3
    instructions: int | None
    seconds: float
    least_seconds: float | None = None


LaunchShape = tuple[str, Dim3, Dim3]
"""The kernel of a launch, its grid and its block."""


def _cost(entry: LaunchEntry) -> tuple[int, int]:
    """Returns a key that orders launches by their warp instructions, the first of equal ones
    last."""
    return entry.instructions or 0, -entry.number


class Captured(msgspec.Struct, frozen=True):
    """The launches of one process, the number of the costliest that is saved (0 for none), the
    kernels that were launched and not wanted, when the first launch began, and the core files of
    the saved launches by their numbers."""

    launches: tuple[LaunchEntry, ...] = ()
    saved: int = 0
    other_kernels: tuple[str, ...] = ()
    began: float = 0.0
    files: dict[int, str] = {}


class LaunchCapture:
    """Lists the launches of kernels whose names match the regular expression `kernel`, and keeps
    launch `number` of them until `write`. Where that is 0, it keeps `most` launches: of each kernel
    in one shape the launch that executes the most warp instructions, the costliest of these."""

    def __init__(self, folder: str, kernel: str = "", number: int = 0, most: int = 1) -> None:
        """`folder` is where `write` writes. Raises WarploomError for no regular expression."""
        self._folder, self._number, self._most = Path(folder), number, most
        self._pattern = kernel_pattern(kernel)
        self._launches: list[LaunchEntry] = []
        self._others: dict[str, None] = {}
        self._images: dict[int, MemorySnapshots] = {}
        self._kept: dict[LaunchShape, tuple[Snapshot, LaunchEntry]] = {}
        self._began = 0.0

    def wraps(self, kernel: LoadedKernel, execute: Execute, findings: object = None) -> Execute:
        """Returns what runs a launch of a kernel as `execute` does, and captures it."""
        name = read_symbol(kernel.name).template
        if not self._pattern.search(name):
            self._others.setdefault(name)
            return execute

        def captured(
            program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
        ) -> Callable[[], Tally]:
            return self._run(kernel, name, execute, (program, launch, memory, progress))

        return captured

    def _run(
        self,
        kernel: LoadedKernel,
        name: str,
        execute: Execute,
        given: tuple[Program, Launch, DeviceMemory, Progress | None],
    ) -> Callable[[], Tally]:
        # The report, which processes that capture nothing do without.
        from warploom.host.pointers import pointer_parameters
        from warploom.report.ceilings import least_seconds

        _, launch, memory, _ = given
        self._began = self._began or time.time()
        number = len(self._launches) + 1
        snapshot = None
        if self._number in (0, number):
            snapshot = Snapshot.of(kernel, launch, self._images_of(memory).capture())
        started, instructions, least = time.perf_counter(), None, None
        try:
            counted = execute(*given)
            counters = Counters(counted())
            instructions = counters.warp_instructions
            sizes = {each.start: each.size or 0 for each in pointer_parameters(kernel, launch)}
            least = least_seconds(counters, kernel.context.spec, launch.blocks, sum(sizes.values()))
            return counted
        finally:
            seconds = time.perf_counter() - started
            shape = launch.grid, launch.block
            entry = LaunchEntry(number, name, *shape, instructions, seconds, least)
            self._launches.append(entry)
            if snapshot is not None:
                self._keep(snapshot, entry)

    def _keep(self, snapshot: Snapshot, entry: LaunchEntry) -> None:
        """Keeps a launch if it is costlier than those of its shape, and drops the cheapest one if
        there are too many; of equal ones, the first stays."""
        shape = entry.kernel, entry.grid, entry.block
        if shape not in self._kept or _cost(entry) > _cost(self._kept[shape][1]):
            self._kept[shape] = snapshot, entry
        if len(self._kept) > self._most:
            del self._kept[min(self._kept, key=lambda key: _cost(self._kept[key][1]))]

    def _images_of(self, memory: DeviceMemory) -> MemorySnapshots:
        """Returns the snapshots of a device's memory."""
        if id(memory) not in self._images:
            made = MemorySnapshots(memory, allocates=True, constants=True)
            self._images[id(memory)] = made
        return self._images[id(memory)]

    def write(self) -> None:
        """Writes the list, and the launches that are kept; nothing where there was no launch.
        Raises WarploomError where it cannot."""
        if not self._launches and not self._others:
            return
        stem, files = str(os.getpid()), dict[int, str]()
        kept = sorted(self._kept.values(), key=lambda one: _cost(one[1]), reverse=True)
        for snapshot, entry in kept:
            files[entry.number] = f"{stem}-{entry.number}{SUFFIX}"
            snapshot.save(self._folder / files[entry.number], Cause("launch", "", 0))
        saved = kept[0][1].number if kept else 0
        captured = Captured(tuple(self._launches), saved, tuple(self._others), self._began, files)
        write_bytes(self._folder / f"{stem}.json", msgspec.json.encode(captured))


def kernel_pattern(kernel: str) -> re.Pattern[str]:
    """Returns the regular expression that names of kernels are searched for. Raises WarploomError
    for a text that is none."""
    try:
        return re.compile(kernel)
    except re.error as error:
        raise WarploomError(
            f"--kernel {kernel!r} is not a valid regular expression: {error}. Write part of the "
            "kernel's name, with \\ before characters such as ( and [."
        ) from None


def read_captures(folder: Path) -> list[Captured]:
    """Returns what the processes of a program captured, in the order of their first launches."""
    found: list[Captured] = []
    for file in folder.glob("*.json"):
        with suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(file.read_bytes(), type=Captured))
    return sorted(found, key=lambda each: each.began)
