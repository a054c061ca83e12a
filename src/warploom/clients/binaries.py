"""Looks at a program before it is run: what stands in the way of its kernels."""

from __future__ import annotations

from pathlib import Path

from warploom.clients.fatbin import has_ptx
from warploom.core.errors import WarploomError

FATBIN_SECTION = b".nv_fatbin"
SHARED_RUNTIME = b"libcudart.so"


def check_binary(path: Path) -> None:
    """Raises WarploomError for a CUDA program that cannot find the software GPU."""
    try:
        data = path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise WarploomError(f"{path} cannot be read: {error.strerror}") from None
    if not data.startswith(b"\x7fELF") or FATBIN_SECTION not in data:
        return
    if SHARED_RUNTIME not in data:
        raise WarploomError(
            f"{path} is statically linked with NVIDIA's CUDA runtime. The static runtime uses "
            "undocumented interfaces of NVIDIA's driver, so the program cannot run here. Link the "
            "shared runtime: `nvcc -cudart shared`; with CMake, set CMAKE_CUDA_RUNTIME_LIBRARY to "
            "Shared. You can also run the program's kernels individually: `nvcc -ptx -lineinfo`, "
            "then `warploom run FILE.ptx --kernel NAME`."
        )
    if not has_ptx(data):
        raise WarploomError(
            f"{path} contains GPU machine code but no PTX, and Warploom cannot run machine code. "
            "Include PTX in the build: `nvcc -arch=compute_80`, or -gencode "
            "arch=compute_80,code=compute_80."
        )
