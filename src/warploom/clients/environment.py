"""The environment in which a program finds the software GPU instead of NVIDIA's libraries."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from warploom.clients.nvcc import real_nvcc
from warploom.clients.settings import Settings
from warploom.clients.toolkit import PROGRAMS, front_toolkit
from warploom.core.errors import WarploomError

LIBRARIES = Path(__file__).parent / "lib"
PRELOADED = ("libcuda.so.1", "libcudart.so.13", "libnvJitLink.so.13", "libnvrtc.so.13")
"""A library that is loaded already is taken by all who ask for one of its name."""

OPENCL = "libwarploom_opencl.so"
"""The library that OpenCL's loader opens, by its name where it is loaded already."""

PTXAS = Path(__file__).parent / "ptxas.py"

VENDORS = Path(__file__).parent / "vendors"
"""The folder that OpenCL's loader reads: it names the library of the platform."""

LOADER = "libOpenCL.so.1"
OWN_LOADER = LIBRARIES / "opencl"
"""Where programs find a library of the loader's name, if the machine has no loader."""

SYSTEM_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib")

STARTUP = Path(__file__).parent / "startup"
"""The folder of the sitecustomize that prepares for PyTorch and Triton."""


def libraries_are_built() -> bool:
    """Returns whether the stand-ins are there: building them needs a C compiler."""
    return all((LIBRARIES / name).exists() for name in PRELOADED)


def environment_for(settings: Settings, outer: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the environment of a program with the software GPU in place. Raises WarploomError
    where the stand-ins are missing."""
    outer = os.environ if outer is None else outer
    if not libraries_are_built():
        raise WarploomError(
            "Warploom's versions of NVIDIA's libraries were not built: to build them, an "
            "installation from source requires Linux and a C compiler. Install gcc or clang, then "
            "reinstall Warploom with `pip install --force-reinstall --no-deps` (in a checkout, run "
            "`python tools/build_driver.py`). `from warploom import cuda` works without these "
            "libraries."
        )
    preloaded = [str(LIBRARIES / name) for name in PRELOADED]
    return {
        **outer,
        **settings.environment(),
        "LD_LIBRARY_PATH": _joined(
            str(LIBRARIES),
            outer.get("LD_LIBRARY_PATH"),
            "" if has_loader(outer) else str(OWN_LOADER),
        ),
        "OCL_ICD_VENDORS": str(VENDORS),
        "LD_PRELOAD": _joined(*preloaded, outer.get("LD_PRELOAD")),
        **_kernel_compiler(outer),
        **_torch_options(settings, outer),
        "PYTHONPATH": _joined(str(STARTUP), outer.get("PYTHONPATH")),
        "WARPLOOM_LIBPYTHON": python_library(),
        "WARPLOOM_PYTHONHOME": sys.base_prefix,
        "WARPLOOM_PATH": os.pathsep.join(part for part in sys.path if part),
        "TRITON_LIBCUDA_PATH": str(LIBRARIES),
        "TRITON_PTXAS_PATH": str(PTXAS),
        "TRITON_PTXAS_BLACKWELL_PATH": str(PTXAS),
        "DEV": outer.get("DEV", "CUDA"),
    }


def has_loader(outer: Mapping[str, str]) -> bool:
    """Returns whether the machine has a loader of OpenCL, which may know other platforms, too."""
    folders = [*SYSTEM_FOLDERS, *outer.get("LD_LIBRARY_PATH", "").split(":")]
    places = [Path(folder) for folder in folders if folder]
    return any((place / LOADER).exists() or any(place.glob(f"*/{LOADER}")) for place in places)


def _kernel_compiler(outer: Mapping[str, str]) -> dict[str, str]:
    """Returns an nvcc in front of the machine's own, for PyCUDA's `SourceModule`, in a toolkit that
    programs find by CUDA_HOME, too. Where it can run no nvcc, sources cannot be preprocessed, as
    PyCUDA's cache of them needs."""
    path = outer.get("PATH", "")
    found = {} if real_nvcc(path) else {"PYCUDA_DISABLE_CACHE": "1"}
    programs = PROGRAMS
    with suppress(OSError):  # the cache may be read-only
        toolkit = front_toolkit()
        programs = toolkit / "bin"
        if not {"CUDA_HOME", "CUDA_PATH"} & {*outer}:
            found["CUDA_HOME"] = str(toolkit)
    return {"PATH": _joined(str(programs), path), "WARPLOOM_PYTHON": sys.executable, **found}


def _torch_options(settings: Settings, outer: Mapping[str, str]) -> dict[str, str]:
    """Options of PyTorch that are not set: its caching allocator hides accesses past the end of a
    tensor, and each of Inductor's compile workers would import it anew."""
    own_allocations = {} if settings.caching_allocator else {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    options = {**own_allocations, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return {name: value for name, value in options.items() if name not in outer}


def _joined(*parts: str | None) -> str:
    return ":".join(part for part in parts if part)


def python_library() -> str:
    """Returns the shared library of this Python, for programs that have none; empty where there is
    none."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    path = Path(str(folder)) / str(name)
    return str(path) if path.suffix != ".a" and path.exists() else ""
