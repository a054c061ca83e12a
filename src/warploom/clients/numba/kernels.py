"""Kernels in Numba's manner: numba-cuda compiles them when types are known; they run here."""

from __future__ import annotations

import functools
import struct
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import Any, cast

import numpy as np
from numba import cuda as numba_cuda
from numba.core.errors import NumbaPerformanceWarning
from numba.cuda import dispatcher as numba_dispatcher
from numba.cuda import types
from numba.cuda.core import sigutils  # pyright: ignore[reportMissingModuleSource]
from numba.cuda.cudadrv import nvrtc as numba_nvrtc  # pyright: ignore[reportMissingModuleSource]
from numba.cuda.cudadrv import nvvm as numba_nvvm  # pyright: ignore[reportMissingModuleSource]
from numba.cuda.typing.typeof import typeof  # pyright: ignore[reportMissingModuleSource]

from warploom.clients.driver import ordering
from warploom.clients.driver.device_runtime import GRID_SYNC, with_runtime
from warploom.clients.numba.arrays import DeviceArray, In, MappedArray
from warploom.clients.numba.devices import get_current_device
from warploom.clients.numba.packing import Back, Packer, Words, packer_of
from warploom.clients.numba.streams import handle_of
from warploom.clients.session import session
from warploom.clients.targets import closest_target, without_fma
from warploom.core.errors import Dim3, WarploomError
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.frontends.cuda_cpp import compile_cuda
from warploom.host.kernel import Kernel as HostKernel
from warploom.host.launcher import Launcher

COMPILED = ("debug", "lineinfo", "fastmath", "opt", "launch_bounds")
"""Options of `jit` that go to the compiler."""


@dataclass(frozen=True)
class Specialized:
    """A kernel for certain types: its PTX, the kernel, and how its parameters are laid out."""

    ptx: str
    kernel: HostKernel
    packers: tuple[Packer, ...]
    layout: struct.Struct
    cooperative: bool

    def packed(self, args: Sequence[Any], back: Back) -> bytes:
        """Returns the parameter block for these arguments."""
        words: Words = []
        for packer, value in zip(self.packers, args, strict=True):
            packer(value, words, back)
        return self.layout.pack(*words)


class Kernel:
    """A function that `@cuda.jit` compiles: `kernel[grid, block, stream, shared](...)` launches it,
    and kernels and device functions can call it."""

    def __init__(self, function: Callable[..., None], options: dict[str, Any]) -> None:
        self.py_func = function
        self.options = options
        self.dispatcher: Any = numba_cuda.jit(**_for_numba(options))(function)
        self.specialized: dict[tuple[Any, ...], Specialized] = {}
        self.signatures: list[tuple[Any, ...]] = []
        functools.update_wrapper(cast("Any", self), function)

    def __getitem__(self, configuration: Any) -> Configured:
        """Returns a launch configuration: grid, block, and perhaps a stream and bytes of shared
        memory."""
        given: list[Any] = []
        if isinstance(configuration, tuple):
            given += cast("tuple[Any, ...]", configuration)
        if not 2 <= len(given) <= 4:
            raise ValueError(
                "a launch must specify at least the grid and block dimensions: kernel[grid, block]"
            )
        stream = given[2] if len(given) > 2 else 0
        shared = given[3] if len(given) > 3 else 0
        return Configured(self, _dims(given[0]), _dims(given[1]), int(shared), handle_of(stream))

    def __call__(self, *args: Any) -> None:
        raise ValueError(
            f"{self.py_func.__name__} is a kernel: launch it as kernel[grid, block](...)"
        )

    def forall(self, ntasks: int, tpb: int = 0, stream: object = 0, sharedmem: int = 0) -> ForAll:
        """Returns a launcher of as many threads as there are tasks, in blocks that fit."""
        return ForAll(self, ntasks, tpb, sharedmem, handle_of(stream))

    def compile(self, argtypes: tuple[Any, ...]) -> Specialized:
        """Returns the kernel for these types, compiled when it is first asked for."""
        known = self.specialized.get(argtypes)
        if known is None:
            known = self.specialized[argtypes] = self._compile(argtypes)
        return known

    def _compile(self, argtypes: tuple[Any, ...]) -> Specialized:
        device = session().device
        options = {name: self.options[name] for name in COMPILED if name in self.options}
        options.setdefault("lineinfo", not options.get("debug"))
        with _without_a_driver():
            codes, returned = numba_cuda.compile_all(
                self.py_func,
                argtypes,
                device=False,
                abi="numba",
                output="ptx",
                cc=device.spec.compute_capability,
                **options,
            )
        if returned is not types.void:
            raise TypeError(
                f"{self.py_func.__name__} is a kernel and returns {returned}: a kernel cannot "
                "return a value; write results into an array"
            )
        ptx, *others = map(_text, codes)
        module = with_runtime(device, ptx, f"{self.py_func.__name__}.ptx", others)
        found = [packer_of(one) for one in argtypes]
        layout = struct.Struct("@" + "".join(format for format, _ in found))
        kernel = module[module.kernels[0]]
        packers = tuple(packer for _, packer in found)
        return Specialized(ptx, kernel, packers, layout, any(name in ptx for name in GRID_SYNC))

    def types_of(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the Numba types of arguments; those of the signature where the kernel has one.
        Raises TypeError for an array that the signature does not accept."""
        if not self.signatures:
            return tuple(type_of(value) for value in args)
        for position, (wanted, value) in enumerate(zip(self.signatures[0], args, strict=False)):
            if isinstance(wanted, types.Array):
                self._check_array(position, wanted, type_of(value))
        return self.signatures[0]

    def _check_array(self, position: int, wanted: Any, actual: Any) -> None:
        """Raises TypeError where an array has another element type, rank or layout than the
        signature, or is read-only where the signature is not."""
        if actual.can_convert_to(None, wanted) is None:
            raise TypeError(
                f"No matching definition for argument {position} of {self.py_func.__name__}: the "
                f"signature specifies {wanted}, but the argument is {actual}. Convert the array, "
                "or omit the signature."
            )

    def launch(self, configured: Configured, args: Sequence[Any]) -> None:
        """Compiles where needed, launches, and copies host arrays back."""
        made = self.compile(self.types_of(args))
        back: Back = []
        data = made.packed(args, back)
        launcher = Launcher(
            made.kernel, configured.grid, configured.block, None, configured.shared_bytes
        )
        with ordering.within(configured.stream):
            launcher.packed(data, **session().launch_options(cooperative=made.cooperative))
        for after in back:
            after()

    def inspect_asm(self, signature: tuple[Any, ...] | None = None) -> Any:
        """Returns the PTX for a signature, or of all that were compiled."""
        if signature is not None:
            return self.specialized[signature].ptx
        return {types: made.ptx for types, made in self.specialized.items()}

    def specialize(self, *args: Any) -> Kernel:
        """Returns a kernel for the types of these arguments alone."""
        made = Kernel(self.py_func, self.options)
        made.signatures.append(self.types_of(args))
        made.compile(made.signatures[0])
        return made

    def _property(self, signature: Any, of: Callable[[Specialized], int]) -> Any:
        if signature is not None:
            return of(self.compile(signature))
        if len(self.specialized) == 1 and self.signatures:
            return of(next(iter(self.specialized.values())))
        return {types: of(made) for types, made in self.specialized.items()}

    def get_regs_per_thread(self, signature: Any = None) -> Any:
        return self._property(signature, lambda made: made.kernel.resources.registers)

    def get_shared_mem_per_block(self, signature: Any = None) -> Any:
        return self._property(signature, lambda made: made.kernel.program.shared_bytes)

    def get_local_mem_per_thread(self, signature: Any = None) -> Any:
        return self._property(signature, lambda made: made.kernel.program.local_bytes)


@dataclass(frozen=True)
class Configured:
    """A kernel with its launch configuration."""

    kernel: Kernel
    grid: Dim3
    block: Dim3
    shared_bytes: int
    stream: int

    def __call__(self, *args: Any) -> None:
        """Launches, and waits for the end. What the kernel does wrong is raised here."""
        self.kernel.launch(self, args)


@dataclass(frozen=True)
class ForAll:
    """A launch by the number of tasks."""

    kernel: Kernel
    tasks: int
    threads: int
    shared_bytes: int
    stream: int

    def __call__(self, *args: Any) -> None:
        if self.tasks < 0:
            raise ValueError(f"can't create ForAll with negative task count: {self.tasks}")
        if self.tasks == 0:
            return
        threads = self.threads or self._best(self.kernel.compile(self.kernel.types_of(args)))
        grid = -(-self.tasks // threads)
        Configured(self.kernel, (grid, 1, 1), (threads, 1, 1), self.shared_bytes, self.stream)(
            *args
        )

    def _best(self, made: Specialized) -> int:
        """Returns the largest block among those that keep most threads on an SM."""
        spec, resources = session().device.spec, made.kernel.resources
        shared = made.kernel.program.shared_bytes + self.shared_bytes

        def threads(size: int) -> int:
            demand = Demand(size, resources.registers, shared, resources.barriers)
            return size * occupancy_of(spec, demand).active_blocks

        sizes = range(spec.max_threads_per_block, 0, -spec.warp_size)
        return max(sizes, key=threads)


def type_of(value: Any) -> Any:
    """Returns the Numba type of an argument."""
    if isinstance(value, DeviceArray):
        if value.numba_type is None:
            value.numba_type = typeof(value.view_of_memory)
        return value.numba_type
    if isinstance(value, In):
        return type_of(value.value)
    if isinstance(value, MappedArray):
        return typeof(value.view(np.ndarray))
    return typeof(value)


def _text(code: Any) -> str:
    """Returns the PTX of what Numba gives to its linker."""
    if isinstance(code, (bytes, str)):
        return code.decode() if isinstance(code, bytes) else code
    raise WarploomError(
        f"{code.name} is not PTX but {code.kind}, which requires Numba's own linker: run the "
        "unchanged program with `warploom run program.py`"
    )


_compiling = RLock()
_nvrtc, _nvvm = cast("Any", numba_nvrtc), cast("Any", numba_nvvm)

_closest_target = closest_target(_nvrtc.find_closest_arch, _nvrtc.get_supported_ccs)
_compile_ir = without_fma(_nvvm.compile_ir)


@contextmanager
def _without_a_driver() -> Generator[None]:
    """Replaces what numba-cuda calls while it compiles: the driver, for the device; a library that
    loads the driver, for C++ sources; and what refuses devices that are older than its targets."""
    with _compiling, ExitStack() as patches:
        for module, name, function in (
            (numba_dispatcher, "get_current_device", get_current_device),
            (_nvrtc, "compile", _compile_source),
            (_nvrtc, "find_closest_arch", _closest_target),
            (_nvvm, "compile_ir", _compile_ir),
        ):
            patches.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, function)
        yield


def _compile_source(
    source: bytes | str, name: str, cc: tuple[int, int], **_: bool
) -> tuple[str, str]:
    """Returns the PTX of a CUDA source that Numba would link, and the compiler's log."""
    text = source.decode() if isinstance(source, bytes) else source
    return compile_cuda(text, name, cc, ("-rdc=true",)), ""


def _dims(given: Any) -> Dim3:
    extents = cast("list[Any]", given) if isinstance(given, (tuple, list)) else [given]
    dims = [int(n) for n in extents]
    if not 1 <= len(dims) <= 3:
        raise ValueError(f"a grid or a block must have one to three dimensions, not {given!r}")
    x, y, z = (*dims, 1, 1)[:3]
    return x, y, z


def _for_numba(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "device"}


def jit(
    func_or_sig: Any = None, device: bool = False, link: Sequence[Any] = (), **options: Any
) -> Any:
    """Numba's decorator: a kernel, or with `device=True` a function that kernels call.

    Takes a signature (eager compilation), several, or none. `link` is not there: kernels that need
    other sources are for `warploom run`.
    """
    if link:
        raise WarploomError(
            "cuda.jit(link=...) needs Numba's own linker: run the unchanged program with `warploom"
            " run program.py`"
        )
    if device:
        return _device_function(func_or_sig, options)
    if func_or_sig is None:
        return functools.partial(Kernel, options=options)
    if isinstance(func_or_sig, Kernel):
        return func_or_sig
    if callable(func_or_sig) and not sigutils.is_signature(func_or_sig):
        return Kernel(cast("Any", func_or_sig), options)
    overloads = cast("list[Any]", func_or_sig) if isinstance(func_or_sig, list) else [func_or_sig]
    signatures = [sigutils.normalize_signature(one)[0] for one in overloads]

    def decorate(function: Callable[..., None]) -> Kernel:
        made = Kernel(function, options)
        if len(signatures) == 1:
            made.signatures.append(signatures[0])
        for signature in signatures:
            made.compile(signature)
        return made

    return decorate


def _device_function(func_or_sig: Any, options: dict[str, Any]) -> Any:
    """Returns what numba-cuda makes of a function that kernels call, or the decorator that does so
    and compiles for the signature."""
    made = numba_cuda.jit(func_or_sig, device=True, **options)
    if not sigutils.is_signature(func_or_sig):
        return made

    def decorate(function: Callable[..., Any]) -> Any:
        with _without_a_driver():
            return made(function)

    return decorate


def quiet() -> None:
    """Numba warns of small grids, which waste a real GPU; here nothing is wasted."""
    warnings.filterwarnings("ignore", message="Grid size", category=NumbaPerformanceWarning)
