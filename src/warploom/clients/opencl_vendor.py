"""A file by which OpenCL's loader finds the platform without `warploom run`.

It names a link to the library in the cache; beside the link stands where Python is, for programs
that have none (`native/bridge.h`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from warploom.clients.environment import LIBRARIES, OPENCL, python_library
from warploom.core.errors import WarploomError
from warploom.core.output_files import write_text
from warploom.llvm.disk_cache import cache_directory

SETTINGS = "warploom_python"
"""The file beside the library: the shared library of Python, its home, and the path of modules, a
line each."""


def vendor_file() -> Path:
    """Returns the .icd file, which is written. Raises WarploomError where the library is missing,
    or the cache cannot be written."""
    if not (LIBRARIES / OPENCL).exists():
        raise WarploomError(
            "the OpenCL library was not built: an installation from source builds it only on "
            "Linux with a C compiler. Install gcc or clang, then install Warploom again."
        )
    folder = cache_directory() / "opencl"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / OPENCL
    fresh = folder / f".{OPENCL}.{os.getpid()}"
    fresh.symlink_to(LIBRARIES / OPENCL)
    fresh.replace(link)
    path = os.pathsep.join(part for part in sys.path if part)
    write_text(folder / SETTINGS, f"{python_library()}\n{sys.base_prefix}\n{path}\n")
    file = folder / "warploom.icd"
    write_text(file, f"{link}\n")
    return file
