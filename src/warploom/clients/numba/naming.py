"""Makes Numba's compiler treat `warploom.cuda` as its own module, and our kernels as its own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from numba import cuda as numba_cuda
from numba.cuda import cudadecl, types
from numba.cuda.typing.typeof import typeof_impl  # pyright: ignore[reportMissingModuleSource]

from warploom.clients.numba.kernels import Kernel


def stand_for_numba(module: ModuleType) -> None:
    """Inside of kernels, `module` means numba.cuda."""
    cudadecl.registry.register_global(module, types.Module(numba_cuda))


@typeof_impl.register(Kernel)
def _type_of_kernel(value: Kernel, context: Any) -> Any:
    return typeof_impl(value.dispatcher, context)
