"""NVIDIA's own libraries: compilers, which the stand-ins of the same names forward to, and those
that compute by machine code, which is said where a program meets it."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from warploom.core.errors import WarploomError

WHEELS = {"libnvJitLink.so.13": "nvidia-nvjitlink", "libnvrtc.so.13": "nvidia-cuda-nvrtc"}

COMPUTING = re.compile(
    r"lib(cublas|cublasLt|cudnn\w*|cufft|cufftw|curand|cusolver|cusolverMg|cusparse|cusparseLt"
    r"|cutensor\w*|nccl|npp\w+|nvjpeg\w*)\.so"
)
"""Names of libraries that compute."""


def machine_code_of(library: str) -> str:
    """Returns what to say of a library of NVIDIA's that a program has called, by its file's name;
    nothing for others, such as compilers."""
    if not COMPUTING.match(library):
        return ""
    return (
        f"{library} contains only machine code for GPUs and no PTX, so Warploom cannot run it, and "
        "the call fails. PyTorch's operators still run, and so do kernels that are available as "
        "PTX."
    )


@lru_cache
def real_library(soname: str) -> ctypes.CDLL:
    """Returns the library of that name from its wheel or from LD_LIBRARY_PATH; its own symbols come
    first in it, for a stand-in with the same ones is loaded too."""
    for folder in _folders():
        path = folder / soname
        if path.exists() and not _is_stand_in(path):
            mode = os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
            return ctypes.CDLL(str(path), mode=mode)
    raise WarploomError(f"{soname} was not found: pip install {WHEELS[soname]}")


def _folders() -> list[Path]:
    found: list[Path] = []
    roots: list[str] = []
    with suppress(ImportError):  # a toolkit elsewhere may have it
        roots += importlib.import_module("nvidia.cu13").__path__
    found += [Path(root) / "lib" for root in roots]
    found += [Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    found += [Path("/usr/local/cuda/lib64")]
    return found


def _is_stand_in(path: Path) -> bool:
    return path.parent.resolve() == (Path(__file__).parent / "lib").resolve()
