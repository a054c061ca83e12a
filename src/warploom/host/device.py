"""A device: where memory is allocated, programs are loaded and kernels run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from warploom.core.errors import WarploomError
from warploom.core.options import checked
from warploom.core.source import NO_TEXT, Text
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.host.buffer import Buffer, upload
from warploom.host.context import Context, schedule_of
from warploom.host.core_files.capturing import LaunchCapture
from warploom.host.core_files.saving import CoreSaver, movable_memory
from warploom.host.engines import choose_engine
from warploom.host.module import Module
from warploom.host.option_types import (
    Bytes,
    Content,
    Element,
    Engine,
    Order,
    Policy,
    Seed,
    Shape,
    Size,
    Tools,
    Workers,
)
from warploom.host.programs.builds import Request, builds_here
from warploom.host.programs.sources import LANGUAGES, name_of, part_of, source_of
from warploom.host.programs.targets import check_strictly
from warploom.host.ready_launch import LaunchHooks
from warploom.host.run import Run
from warploom.host.stream import Stream
from warploom.host.textures.tensor_map_options import MakesTensorMaps
from warploom.host.textures.textures import MakesTextures
from warploom.machine.launch import WARP_SIZE
from warploom.machine.memory.device_memory import DeviceMemory, unwritten_bits
from warploom.machine.turn import LaunchLock
from warploom.program.build import STACK_BYTES
from warploom.ptx.link import link
from warploom.ptx.module import Module as Ptx

if TYPE_CHECKING:
    from warploom.host.timelines import Timeline
    from warploom.sanitize.streams import Streams

WARP_SIZES = (WARP_SIZE, 2 * WARP_SIZE)
"""A warp is NVIDIA's; a wavefront of twice as many lanes is AMD's, on GCN and CDNA."""


class Device(MakesTextures, MakesTensorMaps):
    """Simulates a GPU of that product name (`Device("rtx-2080-ti")`) or compute capability
    (`Device(cc="7.5")`); an H100 where neither is given.

    `engine` is "compiled" (fast; the default) or "reference" (readable; the definition).
    `l1_global` says whether L1 caches global loads, where the device leaves that open; `bank_bytes`
    (4 or 8) is the width of shared memory's banks on compute capability 3.x. `strict_target`
    refuses PTX whose `.target` is newer than the device, as a driver does; else its instructions
    decide. `caches` counts hits and misses. `output` is called with the text that kernels print,
    which goes to the standard output where there is none.

    The blocks of a launch are shared by threads on all cores that the process may use, where it is
    proven that blocks are independent and where that saves time; results and counters are those of
    one thread. `workers` is the most threads, 1 for the calling thread alone. `run.workers` is how
    many a launch had, `run.serial_reason` why that was one.

    `record` keeps of each launch what `run.time()` needs to model its time; the engine is then the
    compiled one, with one worker. With `sampled` too, only the first blocks of a launch that is not
    cooperative are executed: so many that the paths and addresses of the others can be predicted.
    What the kernel writes is then incomplete, `run.counters` are those of `run.executed_blocks`,
    and `run.time()` is that of the launch. It is for timing alone.

    `warp_size` of 64 shows how a kernel does under wavefronts of 64 lanes, with the engine
    "reference", which is then the default. Instructions that are defined for warps of 32, such as
    shuffles and votes, are UnsupportedInstruction there.

    `strict` refuses arguments of launches that do not fit the types which the C++ source declares,
    such as a float64 buffer for `float *`; a launch can say otherwise.

    `stack_bytes` is the stack of each thread for calls that cannot be inlined (of functions that
    call themselves, or through pointers) and for `alloca`. `memory_bytes` is the size of its
    memory, where not the product's own. `on_run` is called with each launch that ended without an
    error.

    `schedule` and `seed` choose the order where the architecture leaves it open: "converge" runs
    one side of a branch after the other and reconverges lanes, "fair" and "random" mix what may be
    mixed, "adversarial" keeps every lane diverged from the others as long as it may. One input and
    one seed give one result. `order` "any" has several workers run blocks that may conflict, with
    atomics of the host: the result is one that the architecture allows, not the same each time.

    `sanitize` names the tools that check each launch: "mem", "race", "sync", "init" (`run.findings`
    has what they found). A launch can say otherwise.

    `core` names a file to which a launch is saved that ends in a fault or a deadlock, or in which
    sanitizers find something; `warploom debug FILE` opens it (docs/debugging.md). `capture` lists
    the launches and keeps one of them (`host.core_files.capturing`).
    """

    @checked("Device(...)")
    def __init__(
        self,
        name: str | None = None,
        *,
        cc: str | None = None,
        engine: Engine | None = None,
        l1_global: bool | None = None,
        bank_bytes: int | None = None,
        strict_target: bool = False,
        caches: bool = False,
        schedule: Policy = "converge",
        seed: Seed = 0,
        order: Order = "blocks",
        workers: Workers | None = None,
        warp_size: int = WARP_SIZE,
        stack_bytes: Bytes = STACK_BYTES,
        memory_bytes: Size | None = None,
        output: Callable[[str], object] | None = None,
        on_run: Callable[[Run], object] | None = None,
        record: bool = False,
        sampled: bool = False,
        strict: bool = True,
        sanitize: Tools = (),
        core: str | None = None,
        capture: LaunchCapture | None = None,
    ) -> None:
        self.spec = with_warps_of(find_device(name, cc), warp_size)
        self.engine = choose_engine(engine, self.spec)
        if record and self.engine != "compiled":
            raise WarploomError("only the compiled engine can record launches for timing")
        if sampled and not record:
            raise WarploomError(
                "sampled=True has an effect only on launches that are recorded for timing: also "
                "pass record=True"
            )
        self._strict_target = strict_target
        self._buffers = 0
        options = MemoryOptions(l1_global, bank_bytes, caches)
        access_rules(self.spec, options)  # raises where the device does not have these
        chosen = schedule_of(self.spec, schedule, seed, order)
        saves = (CoreSaver(core) if core else None, capture)
        savers = tuple(saver for saver in saves if saver is not None)
        new_memory = movable_memory if savers else DeviceMemory
        memory = new_memory(self.spec.memory_bytes if memory_bytes is None else memory_bytes)
        self._context = Context(
            self.spec,
            options,
            self.engine,
            chosen,
            workers,
            output,
            stack_bytes,
            memory,
            strict,
            record,
            sampled,
            tuple(sanitize),
        )
        self._hooks = LaunchHooks(on_run, savers)
        self.memory = self._context.memory
        self._builds = builds_here()

    @property
    def streams(self) -> Streams:
        """Returns what sanitizers know of streams; its `findings` are those of copies."""
        return self._context.streams

    @property
    def name(self) -> str:
        """Returns what the catalog calls it."""
        return self.spec.name

    @property
    def turn(self) -> LaunchLock:
        """Held while a kernel runs; acquiring it waits until none does."""
        return self._context.turn

    # ---- programs ---------------------------------------------------------------------------

    @checked("Device.load(...)")
    def load(self, path: str | Path, options: Sequence[str] = ()) -> Module:
        """Returns the program in a file, by suffix: CUDA C++ (.cu), HIP (.hip), OpenCL C (.cl) or
        PTX (.ptx).

        `options` go to the compiler. Raises CompileError, PtxSyntaxError or UnsupportedInstruction
        for what cannot be used, WarploomError for a file that cannot be read.
        """
        text, language = source_of(Path(path))
        return self.compile(text, language, options, name=str(path))

    @checked("Device.compile(...)")
    def compile(
        self,
        text: str,
        language: str = "cuda",
        options: Sequence[str] = (),
        *,
        name: str | None = None,
    ) -> Module:
        """Returns the program in a text of "cuda" (CUDA C++), "hip", "opencl" (OpenCL C) or "ptx".
        `name` stands for it in messages.

        Raises what `load` raises.
        """
        suffixes = {one: suffix for suffix, one in LANGUAGES.items()}
        name = name or f"kernel{suffixes.get(language, '.ptx')}"
        ptx = self._builds.ptx(Request(text, language, name, tuple(options)), self.spec)
        terms = language if language in ("opencl", "hip") else "cuda"
        return self._loaded(ptx, name, Text(name, text), terms)

    def load_compiled(self, ptx: str, source: Text, terms: str) -> Module:
        """Returns the program of a PTX text that was compiled from a source, whose name stands for
        it in messages; `terms` are those of the source's language ("opencl"). Raises what `load`
        raises."""
        module = self._builds.ptx(Request(ptx, "ptx", source.name), self.spec)
        return self._loaded(module, source.name, source, terms)

    @checked("Device.link(...)")
    def link(
        self,
        sources: Sequence[str | Path],
        options: Sequence[str] = (),
        *,
        names: Sequence[str] | None = None,
    ) -> Module:
        """Returns one program of several sources: files as `load` takes them, and PTX texts (a
        source with a line break in it is a text). `names` stand for them in messages.

        CUDA C++ is compiled with `-rdc=true`, so that what is `extern` in one source may be defined
        in another; `options` go to the compiler. Raises what `load` raises, and LinkError where the
        sources do not fit together.
        """
        named = names or [name_of(source, number) for number, source in enumerate(sources, 1)]
        if not sources or len(named) != len(sources):
            raise WarploomError(f"there are {len(sources)} sources to link, but {len(named)} names")
        cc = self.spec.compute_capability
        parts = [
            part_of(source, name, cc, options, self.spec.warp_size)
            for source, name in zip(sources, named, strict=True)
        ]
        return self._loaded(link(parts), " + ".join(named))

    def _loaded(self, ptx: Ptx, name: str, source: Text = NO_TEXT, terms: str = "cuda") -> Module:
        if self._strict_target:
            check_strictly(ptx, self.spec)
        return Module(self._context, ptx, name, source, terms, self._builds, self._hooks)

    # ---- memory -----------------------------------------------------------------------------

    @checked("Device.to_device(...)")
    def to_device(self, host: Content, name: str | None = None) -> Buffer:
        """Returns a buffer with the content of `host`. Its `name` is what fault messages call
        it."""
        buffer = upload(self.memory, host, name or self._next_name())
        self.memory.note_copy(buffer.address, buffer.nbytes, writes=True)
        return buffer

    @checked("Device.empty(...)")
    def empty(self, shape: Shape, dtype: Element = np.float64, name: str | None = None) -> Buffer:
        """Returns a buffer of that shape and type. What it holds is not promised."""
        along = shape if isinstance(shape, Sequence) else (shape,)
        made: np.dtype[Any] = np.dtype(dtype)
        buffer = Buffer(self.memory, tuple(map(int, along)), made, name or self._next_name())
        self.memory.unwritten[buffer.address] = unwritten_bits(buffer.nbytes)
        return buffer

    @checked("Device.zeros(...)")
    def zeros(self, shape: Shape, dtype: Element = np.float64, name: str | None = None) -> Buffer:
        """Returns a buffer of that shape and type, all zero: so is all memory that is newly given
        out."""
        buffer = self.empty(shape, dtype, name)
        self.memory.unwritten.pop(buffer.address)
        return buffer

    @checked("Device.stream(...)")
    def stream(self) -> Stream:
        """Returns a new stream for `kernel[grid, block, stream]`."""
        return Stream(self.memory)

    @contextmanager
    def timeline(self) -> Generator[Timeline]:
        """Takes a timeline of the launches and copies within the context: when each runs on the
        device, and which overlap (`Timeline`). Launches are recorded for it as far as it needs.

        with gpu.timeline() as timeline:
            saxpy[grid, block, first](...)
            saxpy[grid, block, second](...)
        print(timeline.report())

        Raises WarploomError on a device with another engine than the compiled one, or with checks.
        """
        if self.engine != "compiled" or self._context.sanitize:
            raise WarploomError(
                "a timeline requires the compiled engine, without sanitizers: create the device "
                "without engine= and sanitize="
            )
        from warploom.host.timelines import Timeline

        timeline = Timeline(self.spec, self.streams.order)
        self._hooks.timelines.append(timeline)
        self.memory.copy_listeners.append(timeline.copied_by_host)
        try:
            yield timeline
        finally:
            self._hooks.timelines.remove(timeline)
            self.memory.copy_listeners.remove(timeline.copied_by_host)

    def _next_name(self) -> str:
        self._buffers += 1
        return f"buffer {self._buffers}"

    def __repr__(self) -> str:
        return f"Device({self.name}, cc={self.spec.cc}, engine={self.engine})"


def with_warps_of(spec: DeviceSpec, lanes: int) -> DeviceSpec:
    """Returns the device with warps of that size. Raises WarploomError where it can have none
    such."""
    if lanes not in WARP_SIZES:
        sizes = " or ".join(map(str, WARP_SIZES))
        raise WarploomError(f"a warp has {sizes} lanes (warp_size), not {lanes}")
    return spec if lanes == spec.warp_size else spec.with_warps_of(lanes)
