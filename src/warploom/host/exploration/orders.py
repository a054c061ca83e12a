"""One launch under many orders: the same kernel on the same data, as another process can run it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from warploom.core.errors import DeadlockError, Dim3, InstructionLimit, KernelFault
from warploom.cost.device_rules import MemoryOptions
from warploom.devices.spec import DeviceSpec
from warploom.host.buffer import Array, Buffer, upload
from warploom.host.context import Context
from warploom.host.core_files.replaying import ReplayLauncher, saved_launch
from warploom.host.engines import choose_engine
from warploom.host.kernel import Kernel
from warploom.host.launch_options import LaunchOptions
from warploom.host.launcher import Launcher
from warploom.host.option_types import Cluster
from warploom.machine.launch import Schedule, WarpId
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.state import Listener
from warploom.observe.origins import RecordingFull
from warploom.ptx.parser import parse


@dataclass(frozen=True, slots=True)
class Order:
    """A policy and a seed, the instructions before which warps give up their turn, and the warps
    that have the first turns."""

    schedule: str
    seed: int
    interrupts: tuple[int, ...] = ()
    turns: tuple[WarpId, ...] = ()

    def __str__(self) -> str:
        text = f"schedule {self.schedule}, seed {self.seed}"
        text += f", interrupts {self.interrupts}" if self.interrupts else ""
        return f"{text}, turns {self.turns}" if self.turns else text


DEFAULT = Order("converge", 0)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a buffer before the launch."""

    data: Array
    name: str


@dataclass(frozen=True)
class Job:
    """All that a launch needs, in a form that can be sent to another process."""

    spec: DeviceSpec
    options: MemoryOptions
    ptx: str
    name: str
    kernel: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    values: tuple[Any, ...]
    max_instructions: int | None
    cooperative: bool
    cluster_dims: Cluster | None
    saved: Path | None = None
    """The core file of the launch, where it is a saved one: its memory is there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one order: a digest of all results, or the error."""

    order: Order
    digest: bytes
    error: str = ""

    @property
    def result(self) -> tuple[bytes, str]:
        """Equal where two orders ended the same way. Of errors the first line counts: which thread
        is at fault may differ."""
        return self.digest, self.error.partition("\n")[0]


def job_of(launcher: Launcher, args: tuple[Any, ...], options: LaunchOptions) -> Job:
    """Returns the job that a launcher would do with these arguments."""
    kernel, context = launcher.kernel, launcher.kernel.context
    launcher.check(*args, strict=options.get("strict"))
    return Job(
        context.spec,
        context.options,
        kernel.program.module.text,
        kernel.program.module.name,
        kernel.name,
        launcher.grid,
        launcher.block,
        launcher.shared_bytes,
        tuple(_kept(position, value) for position, value in enumerate(args)),
        options.get("max_instructions"),
        options.get("cooperative", False),
        options.get("cluster_dims"),
        launcher.file if isinstance(launcher, ReplayLauncher) else None,
    )


def _kept(position: int, value: Any) -> Any:
    if isinstance(value, Buffer):
        return Content(value.copy_to_host(), value.name)
    if isinstance(value, np.ndarray):
        return Content(cast(Array, value), f"argument {position}")
    return value


@dataclass(frozen=True, slots=True)
class Result:
    """A buffer or a variable of the module after a run: its name, content and address."""

    name: str
    data: Array
    address: int


class JobMemory(Protocol):
    """The memory of a job, the same before each run."""

    launcher: Launcher

    def begin(self) -> tuple[Any, ...]:
        """Restores the first content of memory; returns the arguments."""
        ...

    def results(self) -> tuple[Result, ...]:
        """Returns the memory and outputs after the last run."""
        ...


class UploadedMemory:
    """Memory with the arguments of a job."""

    def __init__(self, job: Job) -> None:
        engine = choose_engine(None, job.spec)
        # What the kernel prints is the same text over and over.
        context = Context(job.spec, job.options, engine, Schedule(), output=lambda text: None)
        module = parse(job.ptx, job.name, job.spec.warp_size)
        self._image = ModuleGlobals(module, context.memory)
        kernel = Kernel(context, module, self._image, job.kernel)
        self.launcher = kernel[job.grid, job.block, 0, job.shared_bytes]
        self._values = job.values
        self._buffers = {
            position: upload(context.memory, value.data, value.name)
            for position, value in enumerate(job.values)
            if isinstance(value, Content)
        }

    def begin(self) -> tuple[Any, ...]:
        """Writes the variables of the module and the buffers anew."""
        self._image.reset()
        for position, buffer in self._buffers.items():
            if buffer.nbytes:
                buffer.view[...] = self._values[position].data
        return tuple(self._buffers.get(i, value) for i, value in enumerate(self._values))

    def results(self) -> tuple[Result, ...]:
        """Returns buffers, then variables."""
        memory = [Result(b.name, b.view, b.address) for b in self._buffers.values()]
        return (*memory, *(Result(*variable) for variable in self._image.contents()))


class SavedMemory:
    """Memory of a launch that is saved in a core file."""

    def __init__(self, file: Path, device: str) -> None:
        self._saved = saved_launch(file)
        ready = self._saved.ready(device=device, quiet=True)
        self.launcher, self._buffers = ready.launcher, ready.buffers

    def begin(self) -> tuple[Any, ...]:
        """Rewinds; the launcher has the arguments."""
        self._saved.rewind()
        return ()

    def results(self) -> tuple[Result, ...]:
        """Returns all that the launch can write."""
        return tuple(Result(b.name, b.view, b.address) for b in self._buffers.values())


class Ready:
    """A job whose program is loaded; every run begins with the same data."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._memory: JobMemory = (
            UploadedMemory(job) if job.saved is None else SavedMemory(job.saved, job.spec.name)
        )
        self.launcher = self._memory.launcher

    def run(self, order: Order) -> str:
        """Runs under an order; gives the error that ended it, if one did."""
        try:
            self.launcher(*self._memory.begin(), **self._options(order))
        except (KernelFault, DeadlockError, InstructionLimit) as error:
            return str(error)
        return ""

    def watch(self, listener: Listener, order: Order) -> str:
        """Launches on the reference machine, until the listener has seen enough; gives the error
        that ended it before, if one did."""
        with suppress(RecordingFull):
            return self.launcher.watch(listener, *self._memory.begin(), **self._options(order))
        return ""

    def conflicts(self, order: Order = DEFAULT) -> tuple[tuple[int, int], ...]:
        """Returns the pairs of instructions that access the same bytes without an order between
        them, as found by the race detector in a run whose turns go by `order`."""
        checked = self.launcher.sanitized(("race",), *self._memory.begin(), **self._options(order))
        return tuple(sorted(checked.conflicts))

    def results(self) -> tuple[Result, ...]:
        """Returns the memory and outputs after the last run."""
        return self._memory.results()

    def digest(self) -> bytes:
        """Returns a digest of the memory and outputs after the last run."""
        made = hashlib.sha256()
        for result in self.results():
            made.update(np.ascontiguousarray(result.data).view(np.uint8).data)
        return made.digest()

    def _options(self, order: Order) -> LaunchOptions:
        return {
            "schedule": order.schedule,
            "seed": order.seed,
            "max_instructions": self.job.max_instructions,
            "cooperative": self.job.cooperative,
            "cluster_dims": self.job.cluster_dims,
            "strict": False,  # they were checked, with the source at hand
            "interrupts": order.interrupts,
            "turns": order.turns,
        }


def run_orders(job: Job, orders: Sequence[Order]) -> list[Outcome]:
    """Runs a job under each order. Workers in other processes are given this to do."""
    ready = Ready(job)
    outcomes: list[Outcome] = []
    for order in orders:
        error = ready.run(order)
        outcomes.append(Outcome(order, b"" if error else ready.digest(), error))
    return outcomes
