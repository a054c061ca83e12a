"""Prepares PyTorch, Triton and other clients for the software GPU when a program imports them, and
imports nothing before.

It needs little of the standard library and nothing else: `startup/sitecustomize.py` loads it by its
path when Python starts, also where Warploom is not installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PREPARED = {
    "cutlass.base_dsl.env_manager": ("warploom.clients.kept_ptx", "keep_ptx"),
    "cuda.bindings._internal.runtime": ("warploom.clients.runtime_bindings", "use_stand_in"),
    "cuda.bindings._internal.runtime_ptds": ("warploom.clients.runtime_bindings", "use_stand_in"),
    "jax_plugins.xla_cuda12": ("warploom.clients.jax_fallback", "explain"),
    "jax_plugins.xla_cuda13": ("warploom.clients.jax_fallback", "explain"),
    "numba.cuda.cudadrv.driver": ("warploom.clients.targets", "accept_old_devices"),
    "numba.cuda.cudadrv.nvrtc": ("warploom.clients.targets", "compile_for_old_devices"),
    "numba.cuda.cudadrv.nvvm": ("warploom.clients.targets", "multiply_then_add"),
    "numba.cuda.debuginfo": ("warploom.clients.source_lines", "agree_with_nvrtc"),
    "numba.cuda.decorators": ("warploom.clients.source_lines", "keep_numba_lines"),
    "torch": ("warploom.clients.torch.installation", "install"),
    "torch._inductor.runtime.benchmarking": ("warploom.clients.autotuning", "settle_inductor"),
    "torch._inductor.runtime.triton_heuristics": (
        "warploom.clients.autotuning",
        "compile_first_configuration",
    ),
    "triton.backends.nvidia.driver": ("warploom.clients.autotuning", "settle_triton"),
    "triton.runtime.autotuner": ("warploom.clients.autotuning", "compile_first_that_works"),
}
"""Modules that are prepared: the function that gets the module when it has been imported."""


def watch_imports() -> None:
    """Prepares each module of PREPARED as soon as it is imported."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds a module of PREPARED by the finders after it, with a loader that prepares it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in PREPARED:
            return None
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(fullname, path, target)
            if found is not None:
                if found.loader is not None and _is_client(fullname, found):
                    found.loader = _Loader(found.loader)  # pyright: ignore[reportAttributeAccessIssue]
                return found
        return None


def _is_client(name: str, spec: ModuleSpec) -> bool:
    """Returns whether a module of PREPARED is of the package that is meant: `numba.cuda` is of
    numba-cuda or, without that, Numba's own, which PyTorch's tests import and nothing here
    supports."""
    return not name.startswith("numba.cuda.") or "numba_cuda" in (spec.origin or "")


class _Loader:
    """Loads a module by another loader, then prepares it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Executes the module, which knows its own loader from then on."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        known = os.environ.get("WARPLOOM_PATH", "").split(os.pathsep)
        sys.path.extend(part for part in known if part and part not in sys.path)
        home, function = PREPARED[module.__name__]
        getattr(import_module(home), function)(module)
