"""CUDA toolkits of NVIDIA's wheels: folders as nvcc, CMake and programs expect them, made of
symbolic links.

The wheels have the files, but neither `lib64` nor libraries without a version in their name, which
linkers look for. One toolkit has the nvcc of the wheels, one Warploom's in front of it.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import tempfile
from pathlib import Path

from warploom.core.user_folders import temporary_folder
from warploom.llvm.disk_cache import cache_directory

PARTS = {
    "bin/nvcc": "nvidia-cuda-nvcc",
    "nvvm/bin/cicc": "nvidia-nvvm",
    "include/crt/host_config.h": "nvidia-cuda-crt",
    "include/cuda_runtime.h": "nvidia-cuda-runtime",
    "include/cccl": "nvidia-cuda-cccl",
}
"""A file of each wheel that nvcc needs, by which it is known to be there."""

FOLDERS = ("include", "lib", "nvvm")

PROGRAMS = Path(__file__).parent / "bin"
"""Where Warploom's nvcc is."""

STUBS = Path("lib", "stubs")
LINKED = {STUBS / "libcuda.so": "libcuda.so.1"}
"""Libraries of Warploom's that programs are linked with where there is no driver."""


def missing_wheels() -> list[str]:
    """Returns the wheels that nvcc needs and that are not installed."""
    roots = _roots()
    return [
        wheel for part, wheel in PARTS.items() if not any((root / part).exists() for root in roots)
    ]


def wheel_toolkit() -> Path | None:
    """Returns the folder of a toolkit made of the wheels, made when it is first asked for; None
    where wheels are missing."""
    return None if missing_wheels() else _toolkit([root / "bin" for root in _roots()])


def front_toolkit() -> Path:
    """Returns the folder of a toolkit with Warploom's nvcc, for programs that look for CUDA by its
    path. Raises OSError where no folder can be written."""
    return _toolkit([PROGRAMS])


def _toolkit(programs: list[Path]) -> Path:
    """Returns the toolkit with the programs of these folders, in the cache or, where the cache
    cannot be written, among temporary files."""
    roots = _roots()
    # A folder's time changes when a wheel with further headers or libraries is installed.
    states = (
        (root / folder).stat().st_mtime_ns
        for root in roots
        for folder in FOLDERS
        if (root / folder).exists()
    )
    parts = map(str, (*programs, *roots, _libraries(), *states))
    name = Path("toolkits", hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16])
    try:
        return _made(cache_directory() / name, programs)
    except OSError:
        return _made(temporary_folder() / name, programs)


def _made(target: Path, programs: list[Path]) -> Path:
    """Returns a toolkit's folder, made where it does not exist."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=target.parent))
        folders = {name: [root / name for root in _roots()] for name in FOLDERS}
        _lay_out({"bin": programs} | folders, made)
        try:
            made.rename(target)
        except OSError:  # another process was first
            if not target.exists():
                raise
    return target


def _roots() -> list[Path]:
    try:
        return [Path(root) for root in importlib.import_module("nvidia.cu13").__path__]
    except ImportError:
        return []


def _libraries() -> Path:
    return Path(__file__).parent / "lib"


def _lay_out(folders: dict[str, list[Path]], target: Path) -> None:
    """Fills an empty folder with folders of links to the files of others."""
    for folder, sources in folders.items():
        (target / folder).mkdir()
        for source in sources:
            for file in sorted(source.glob("*")):
                if not (target / folder / file.name).is_symlink():
                    (target / folder / file.name).symlink_to(file)
    for library in sorted((target / "lib").glob("lib*.so.*")):
        plain = library.with_name(re.sub(r"\.so\..*", ".so", library.name))
        if not plain.is_symlink():
            plain.symlink_to(library.name)
    for place, library in LINKED.items():
        (target / place).parent.mkdir(exist_ok=True)
        (target / place).symlink_to(_libraries() / library)
    os.symlink("lib", target / "lib64")
