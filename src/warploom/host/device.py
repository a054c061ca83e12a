"""A device: where memory is allocated, programs are loaded and kernels run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.analysis.build import STACK_BYTES
from warploom.core.errors import CompileError, WarploomError
from warploom.devices.catalog import find_device
from warploom.host.buffer import Buffer, upload
from warploom.host.context import Context, schedule_of
from warploom.host.engines import ENGINES
from warploom.host.module import Module
from warploom.host.stream import Stream
from warploom.host.targets import check_strictly
from warploom.host.texture import MakesTextures
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify
from warploom.rules.choice import MemoryOptions

LANGUAGES = {".cu": "cuda", ".ptx": "ptx"}


class Device(MakesTextures):
    """A GPU of that product name (`Device("rtx-2080-ti")`) or compute capability
    (`Device(cc="7.5")`); an H100 where neither is given.

    `engine` is "compiled" (fast) or "reference" (readable; the definition). `l1_global` says
    whether L1 caches global loads, where the device leaves that open; `bank_bytes` (4 or 8) is the
    width of shared memory's banks on compute capability 3.x. `strict_target` refuses PTX whose
    `.target` is newer than the device, as a driver does; else its instructions decide. `caches`
    counts hits and misses. `output` is called with the text that kernels print, which goes to the
    standard output where there is none.

    `workers` threads share the blocks of a launch where it is proven that blocks stay apart;
    results and counters are those of one. `run.alone_because` tells why a launch had one.

    `stack_bytes` is the room of each thread for calls that cannot be inlined (of functions that
    call themselves, or through pointers) and for `alloca`.

    `schedule` and `seed` choose who goes first where the architecture leaves it open: "converge"
    runs one side of a branch after the other and lets lanes gather, "fair" and "random" mix what
    may be mixed, "adversarial" keeps every lane apart from the others as long as it may. One input
    and one seed give one result.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        cc: str | None = None,
        engine: str = "compiled",
        l1_global: bool | None = None,
        bank_bytes: int | None = None,
        strict_target: bool = False,
        caches: bool = False,
        schedule: str = "converge",
        seed: int = 0,
        workers: int = 1,
        stack_bytes: int = STACK_BYTES,
        output: Callable[[str], object] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise WarploomError(f"there is no engine {engine!r}; choose of {', '.join(ENGINES)}")
        if workers < 1:
            raise WarploomError(f"a device needs at least one worker, not {workers}")
        self.spec = find_device(name, cc)
        self.engine = engine
        self._strict_target = strict_target
        self._buffers = 0
        options = MemoryOptions(l1_global, bank_bytes, caches)
        order = schedule_of(self.spec, schedule, seed)
        self._context = Context(self.spec, options, engine, order, workers, output, stack_bytes)
        self.memory = self._context.memory

    @property
    def name(self) -> str:
        """What the catalog calls it."""
        return self.spec.name

    # ---- programs ---------------------------------------------------------------------------

    def load(self, path: str | Path, options: Sequence[str] = ()) -> Module:
        """The program in a file: CUDA C++ (.cu) or PTX (.ptx), by suffix.

        `options` go to the compiler. Raises CompileError, PtxSyntaxError or UnsupportedInstruction
        for what cannot be used, WarploomError for a file that cannot be read.
        """
        file = Path(path)
        language = LANGUAGES.get(file.suffix.lower())
        if language is None:
            raise CompileError(
                f"{file} cannot be loaded: its suffix is {file.suffix or 'missing'}, and CUDA C++"
                f" (.cu) and PTX (.ptx) are what can. Of a binary, load the source or the PTX that"
                f" it was made from (`cuobjdump -ptx` extracts it)."
            )
        return self.compile(_read(file), language, options, name=str(file))

    def compile(
        self,
        text: str,
        language: str = "cuda",
        options: Sequence[str] = (),
        *,
        name: str | None = None,
    ) -> Module:
        """The program in a text of "cuda" (CUDA C++) or "ptx". `name` stands for it in messages.

        Raises what `load` raises.
        """
        name = name or {"cuda": "kernel.cu"}.get(language, "kernel.ptx")
        ptx_name = name
        if language == "cuda":
            from warploom.frontends.cuda_cpp import compile_cuda

            text = compile_cuda(text, name, self.spec.compute_capability, options)
            ptx_name += ".ptx"
        elif language != "ptx":
            known = " and ".join(repr(known) for known in LANGUAGES.values())
            raise CompileError(f"the language {language!r} is none of {known}")
        elif options:
            raise CompileError(f"PTX is not compiled, so these options mean nothing: {options}")
        ptx = parse(text, ptx_name)
        verify(ptx)
        if self._strict_target:
            check_strictly(ptx, self.spec)
        return Module(self._context, ptx, name)

    # ---- memory -----------------------------------------------------------------------------

    def to_device(self, host: npt.ArrayLike, name: str | None = None) -> Buffer:
        """A buffer with the content of `host`. Its `name` is what fault messages call it."""
        return upload(self.memory, host, name or self._next_name())

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = np.float64,
        name: str | None = None,
    ) -> Buffer:
        """A buffer of that shape and type. What it holds is not promised."""
        dims = shape if isinstance(shape, tuple) else (shape,)
        made: np.dtype[Any] = np.dtype(dtype)
        return Buffer(self.memory, tuple(int(n) for n in dims), made, name or self._next_name())

    def zeros(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = np.float64,
        name: str | None = None,
    ) -> Buffer:
        """A buffer of that shape and type, all zero: so is all memory that is newly given out."""
        return self.empty(shape, dtype, name)

    def stream(self) -> Stream:
        """A new stream for `kernel[grid, block, stream]`."""
        return Stream()

    def _next_name(self) -> str:
        self._buffers += 1
        return f"buffer {self._buffers}"

    def __repr__(self) -> str:
        return f"Device({self.name}, cc={self.spec.cc}, engine={self.engine})"


def _read(file: Path) -> str:
    """The text of a source file; errors say what is wrong with one that is none."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WarploomError(f"{file} cannot be read: {error.strerror}") from None
    try:
        text = data.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        kind = "an ELF binary, such as a cubin" if data.startswith(b"\x7fELF") else "binary data"
        raise CompileError(
            f"{file} is not text but {kind}. Load the source or the PTX that it was made from"
            f" (`nvcc -ptx -lineinfo` makes it, `cuobjdump -ptx` extracts it)."
        )
    return text
