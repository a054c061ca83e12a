"""Saves launches as core files: those that go wrong; `capturing` chooses others.

A `CoreSaver` keeps what memory was before each launch; pages that a launch has not changed are kept
once. `host.core_files.opening` makes a launch of a file again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec

from warploom.core.errors import DeadlockError, InstructionLimit, KernelFault, WarploomError
from warploom.core.output_files import writing
from warploom.core.source import Location
from warploom.core.source_files import read_source
from warploom.core.streams import report
from warploom.host.core_files.format import (
    VERSION,
    Core,
    CoreAllocation,
    CoreDevice,
    CoreLaunch,
    CoreMemory,
)
from warploom.host.debugging import Quit
from warploom.host.engines import Execute, Progress
from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.snapshots import MemorySnapshot, MemorySnapshots
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.sanitize.findings import Finding

LARGEST_SOURCE = 4 << 20
"""Bytes of a source file that is kept."""

MOVABLE_FROM, MOVABLE_STEP, MOVABLE_STEPS = 1 << 45, 1 << 38, 64
"""Where memory lies that another process is to have at the same addresses: above programs that are
not position-independent, below their libraries and stacks (Linux, x86-64 and AArch64)."""


def movable_memory(capacity: int) -> DeviceMemory:
    """Returns device memory at addresses that are likely to be free in other processes, too; where
    they are not free here, at any."""
    for _ in range(2):
        base = MOVABLE_FROM + MOVABLE_STEP * secrets.randbelow(MOVABLE_STEPS)
        with suppress(WarploomError):
            return DeviceMemory(capacity, base)
    return DeviceMemory(capacity)


REASONS: tuple[tuple[type[WarploomError], str], ...] = (
    (KernelFault, "fault"),
    (DeadlockError, "deadlock"),
    (InstructionLimit, "limit"),
)


@dataclass(frozen=True)
class Cause:
    """Say why a launch is saved, as `Core` has it."""

    reason: str
    message: str
    position: int | None = None
    tools: tuple[str, ...] = ()

    @classmethod
    def of(cls, error: WarploomError, position: int | None = None) -> Cause | None:
        """Returns the cause that an error is; None for one that the launch has not made."""
        for kind, reason in REASONS:
            if isinstance(error, kind):
                return cls(reason, str(error), position)
        return None


@dataclass(frozen=True)
class Snapshot:
    """A launch and the memory before it, with constant memory; `unwritten` has the bitmaps of
    `DeviceMemory.unwritten`. Nothing of it changes when the program goes on."""

    kernel: LoadedKernel
    launch: Launch
    image: MemorySnapshot
    memory: CoreMemory
    unwritten: dict[int, bytes]

    @classmethod
    def of(cls, kernel: LoadedKernel, launch: Launch, image: MemorySnapshot) -> Snapshot:
        """Returns the snapshot of a launch that is about to begin, whose memory `image` has."""
        memory = kernel.context.memory
        unwritten = {address: bits.tobytes() for address, bits in memory.unwritten.items()}
        return cls(kernel, launch, image, _memory_of(kernel, image), unwritten)

    def save(self, file: Path, cause: Cause) -> None:
        """Writes a core file. Raises WarploomError where it cannot be written."""
        names = dict(self._sources())
        with _written(file) as archive:
            archive.writestr("core.json", msgspec.json.encode(self._head(cause, tuple(names))))
            archive.writestr("kernel.ptx", self.kernel.program.module.text)
            for number, text in enumerate(names.values()):
                archive.writestr(f"sources/{number}", text)
            for address, pages in self.image.pages.items():
                if any(page.any() for page in pages):
                    with archive.open(f"memory/{address:x}", "w", force_zip64=True) as entry:
                        for page in pages:
                            entry.write(page.data)
            for address, bits in self.unwritten.items():
                archive.writestr(f"written/{address:x}", bits)

    def _head(self, cause: Cause, sources: tuple[str, ...]) -> Core:
        from importlib.metadata import version  # its import takes 10 ms

        kernel, context = self.kernel, self.kernel.context
        options = context.options
        device = CoreDevice(
            name=context.spec.name,
            warp_size=context.spec.warp_size,
            engine=context.engine_name,
            l1_global=options.l1_global,
            bank_bytes=options.bank_bytes,
            caches=options.caches,
            stack_bytes=context.stack_bytes,
        )
        return Core(
            version=VERSION,
            made_by=version("warploom"),
            kernel=kernel.name,
            module=kernel.program.module.name,
            source=kernel.source.name,
            terms=kernel.terms,
            reason=cause.reason,
            message=cause.message,
            position=cause.position,
            tools=cause.tools,
            sources=sources,
            device=device,
            launch=_launch_of(self.launch),
            memory=self.memory,
        )

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Yields the source files of the kernel that can be read: their names and texts."""
        source = self.kernel.source
        if source.content:
            yield source.name, source.content
        names = dict.fromkeys(
            place.file
            for made in self.kernel.program.instructions
            for place in _places(made.location)
            if not place.in_toolkit and place.file != source.name
        )
        for name in names:
            text = read_source(name, LARGEST_SOURCE)
            if text is not None:
                yield name, text


class CoreSaver:
    """Saves the launches of a device that go wrong: the first to `file`, later ones beside it, with
    numbers. `%p` in the name stands for the number of the process."""

    def __init__(self, file: str) -> None:
        path = Path(file.replace("%p", str(os.getpid()))).absolute()
        if not path.parent.is_dir():
            raise WarploomError(
                f"core file {file}: the folder {path.parent} does not exist. Create it first."
            )
        self._file, self._saved = path, 0
        self._images: MemorySnapshots | None = None

    def wraps(
        self, kernel: LoadedKernel, execute: Execute, findings: Sequence[Finding] | None
    ) -> Execute:
        """Returns what runs a launch of a kernel as `execute` does, and saves it if it goes wrong;
        `findings` are filled while it runs."""
        return partial(self._run, kernel, execute, () if findings is None else findings)

    def _run(
        self,
        kernel: LoadedKernel,
        execute: Execute,
        findings: Sequence[Finding],
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None,
    ) -> Callable[[], Tally]:
        if self._images is None:
            self._images = MemorySnapshots(memory, allocates=True, constants=True)
        snapshot = Snapshot.of(kernel, launch, self._images.capture())
        try:
            counted = execute(program, launch, memory, progress)
        except WarploomError as error:
            self._save_error(snapshot, error)
            raise
        except Quit as quit:
            if quit.error is not None:
                self._save_error(snapshot, quit.error, quit.position)
            raise
        if findings:
            tools = tuple(dict.fromkeys(finding.tool for finding in findings))
            message = "\n".join(finding.message for finding in findings)
            self.save(snapshot, Cause("findings", message, None, tools))
        return counted

    def _save_error(
        self, snapshot: Snapshot, error: WarploomError, position: int | None = None
    ) -> None:
        cause = Cause.of(error, position)
        if cause is not None:
            self.save(snapshot, cause)

    def save(self, snapshot: Snapshot, cause: Cause) -> None:
        """Saves a launch, and prints the file's name on standard error."""
        self._saved += 1
        file = self._file
        if self._saved > 1:
            file = file.with_stem(f"{file.stem}-{self._saved}")
        snapshot.save(file, cause)
        report(f"warploom: saved the launch to {file}; `warploom debug {file}` opens it")


def _memory_of(kernel: LoadedKernel, image: MemorySnapshot) -> CoreMemory:
    """Returns the description of a device's memory before a launch of a kernel."""
    memory, state = kernel.context.memory, image.state
    end = memory.base + memory.capacity
    allocations = tuple(
        CoreAllocation(
            address=address,
            size=allocation.size,
            name=allocation.name,
            constant=address in state.constants,
            lent=not memory.base <= address < end,
        )
        for address, allocation in sorted(state.live.items())
    )
    return CoreMemory(
        base=memory.base,
        capacity=memory.capacity,
        allocations=allocations,
        gaps=state.gaps,
        heap=state.heap,
        heap_limit=memory.heap.limit,
        textures=tuple(map(tuple, memory.textures.rows)),
        variables=kernel.image.addresses_by_name,
    )


def _launch_of(launch: Launch) -> CoreLaunch:
    schedule = launch.schedule
    return CoreLaunch(
        grid=launch.grid,
        block=launch.block,
        parameters=bytes(launch.parameters),
        globals=launch.globals,
        dynamic_shared_bytes=launch.dynamic_shared_bytes,
        max_instructions=launch.max_instructions,
        cooperative=launch.cooperative,
        grid_workspace=launch.grid_workspace,
        cluster=launch.cluster,
        explicit_cluster=launch.explicit_cluster,
        policy=schedule.policy,
        seed=schedule.seed,
        independent=schedule.independent,
        resident_blocks=schedule.resident_blocks,
        interrupts=tuple(sorted(schedule.interrupts)),
        nd_range=launch.nd_range,
    )


def _places(location: Location | None) -> Iterator[Location]:
    """Yields a source position and those that it is inlined at."""
    while location is not None:
        yield location
        location = location.inlined_at


@contextmanager
def _written(file: Path) -> Generator[ZipFile]:
    """Writes an archive beside a file, and replaces that file when the archive is complete."""
    part = file.with_name(f"{file.name}.part")
    try:
        with writing(file):
            with ZipFile(part, "w", ZIP_DEFLATED, compresslevel=1) as archive:
                yield archive
            part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
