"""Makes compilers of Python kernels keep the lines of the source, which change no code.

The program did not ask for them, so they must never fail it: NVIDIA's linker, for one, takes no
code with Numba's lines beside C++ (float16, `link=`). What fails with them is compiled without.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

_added = ContextVar("added", default=False)
"""Whether a decorator that is being executed has lines that the program did not ask for."""


def keep_numba_lines(decorators: Any) -> None:
    """Makes `lineinfo` the default of Numba's `cuda.jit`, in its module `decorators`, but for
    kernels with `debug`, which have lines of their own and exclude it."""
    jit: Callable[..., Any] = decorators.jit
    _compile_again_without_lines(decorators.CUDADispatcher)

    @wraps(jit)
    def jit_with_lines(*args: Any, **options: Any) -> Any:
        debug = options.get("debug")
        debug = decorators.config.CUDA_DEBUGINFO_DEFAULT if debug is None else debug
        if debug or "lineinfo" in options:
            return jit(*args, **options)
        return _adding(jit, decorators.CUDADispatcher)(*args, **options, lineinfo=True)

    decorators.jit = jit_with_lines


def _adding(make: Callable[..., Any], dispatcher: type) -> Callable[..., Any]:
    """Returns `make`, which makes a dispatcher or a decorator that does, such that the dispatcher
    knows that its lines were added."""

    @wraps(make)
    def made_with_lines(*args: Any, **options: Any) -> Any:
        token = _added.set(True)
        try:
            made = make(*args, **options)
        finally:
            _added.reset(token)
        if not isinstance(made, dispatcher):
            return _adding(made, dispatcher)
        made.has_added_lines = True  # type: ignore[attr-defined]
        return made

    return made_with_lines


def _compile_again_without_lines(dispatcher: Any) -> None:
    """Makes a dispatcher whose lines were added compile without them if it fails with them."""
    compile_kernel: Callable[..., Any] = dispatcher.compile

    @wraps(compile_kernel)
    def compile_anyhow(self: Any, signature: Any) -> Any:
        try:
            return compile_kernel(self, signature)
        except Exception as failure:
            if not (_added.get() or getattr(self, "has_added_lines", False)):
                raise
            options = self.targetoptions
            self.targetoptions = {**options, "lineinfo": False}
            try:
                return compile_kernel(self, signature)
            except Exception:
                self.targetoptions = options
                raise failure from None

    dispatcher.compile = compile_anyhow


ERROR, WARNING = 1, 2
"""What LLVM does where flags of two modules differ (LLVM Language Reference, "Module Flags
Metadata")."""


def agree_with_nvrtc(debuginfo: Any) -> None:
    """Makes Numba's debug information say of its version, in its module `debuginfo`, what that of
    NVRTC says: differing versions are an error. LLVM links no modules in which that differs."""
    builder = debuginfo.DIBuilder
    set_flags: Callable[[Any], None] = builder._set_module_flags

    class Flags:
        """The builder, with another number for warnings."""

        def __init__(self, builder: Any) -> None:
            self._builder = builder

        def __getattr__(self, name: str) -> Any:
            return getattr(self._builder, name)

        def _const_int(self, value: int) -> Any:
            return self._builder._const_int(ERROR if value == WARNING else value)

    def set_agreeing_flags(self: Any) -> None:
        set_flags(Flags(self))

    builder._set_module_flags = set_agreeing_flags
