"""`warploom doctor`: what works on this computer, and what is missing for the rest."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Annotated

import typer

import warploom
from warploom.core.errors import WarploomError
from warploom.host.programs.ptxas import INSTALL, find_tool
from warploom.llvm.disk_cache import cache_directory
from warploom.ui.page import BUNDLE
from warploom.ui.progress import progress_file

SOURCE = "__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }"

KERNEL = """.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .u32 %t;
    .reg .u64 %p, %o;
    mov.u32 %t, %tid.x;
    ld.param.u64 %p, [out];
    mul.wide.u32 %o, %t, 4;
    add.u64 %p, %p, %o;
    st.global.u32 [%p], %t;
    ret;
}
"""
"""PTX that stores each thread's index."""


@dataclass(frozen=True)
class Finding:
    """One ability: whether it is there, and what there is or what to do."""

    name: str
    works: bool
    message: str


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> None:
    """Print which features work on this computer, and what to install for the others. The exit
    status is 1 if kernels cannot run."""
    found = list(findings())
    if as_json:
        # `told` is the key that `message` had before.
        print(json.dumps([asdict(one) | {"told": one.message} for one in found], indent=2))
    else:
        width = max(len(one.name) for one in found)
        for one in found:
            print(f"{'✓' if one.works else '✕'} {one.name:<{width}}  {one.message}")
    if not all(one.works for one in found if one.name in REQUIRED):
        sys.exit(1)


def findings() -> Iterator[Finding]:
    """Yields what works, in the order in which it is needed."""
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield Finding("Warploom", True, f"{warploom.__version__} on {where}")
    yield from _tried()
    yield _tool("ptxas")
    yield _tool("nvdisasm")
    yield _module("Numba programs", "numba_cuda", 'pip install "warploom[numba]"')
    yield _module("PyTorch programs", "torch", 'pip install "warploom[torch]"')
    yield _module("Triton programs", "triton", "pip install triton")
    yield _module("notebook widget", "anywidget", 'pip install "warploom[notebook]"')
    yield from _cuda_wheels()
    yield _opencl()
    built = BUNDLE.exists()
    yield Finding("page", built, str(BUNDLE) if built else "run `python tools/build_web.py`")
    yield Finding("cache", True, str(cache_directory()))
    yield Finding("progress in lessons", True, str(progress_file()))


REQUIRED = ("reference machine", "compiled engine")
"""Findings without which no kernel runs."""


def _tried() -> Iterator[Finding]:
    """Yields whether a kernel compiles and runs on either engine."""
    import numpy as np

    try:
        warploom.Device("h100").compile(SOURCE)
        yield Finding("CUDA C++ (NVRTC)", True, "a kernel was compiled")
    except (WarploomError, ImportError, OSError) as error:
        yield Finding("CUDA C++ (NVRTC)", False, _first_line(error))
    for name, engine in zip(REQUIRED, ("reference", "compiled"), strict=True):
        try:
            gpu = warploom.Device("h100", engine=engine)
            out = gpu.zeros(32, np.int32)
            gpu.compile(KERNEL, "ptx")["k"][1, 32](out)
            right = out.copy_to_host().tolist() == list(range(32))
            yield Finding(name, right, "a kernel ran" if right else "a kernel's result is wrong")
        except (WarploomError, ImportError, OSError, RuntimeError) as error:
            yield Finding(name, False, _first_line(error))


WHEELS = (
    *("nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-nvcc", "nvidia-cuda-crt"),
    "nvidia-nvvm",
)
"""Wheels that work with those of the same version alone."""


def _cuda_wheels() -> Iterator[Finding]:
    """Yields whether the installed wheels of CUDA are of one version; nothing without wheels."""
    found: dict[str, list[str]] = {}
    for wheel in WHEELS:
        with suppress(PackageNotFoundError):
            found.setdefault(".".join(version(wheel).split(".")[:2]), []).append(wheel)
    if len(found) == 1:
        yield Finding("CUDA wheels", True, f"all for CUDA {next(iter(found))}")
    elif found:
        kept = next(iter(found))  # that of the runtime, which PyTorch may ask for
        others = ", ".join(f"{wheel} {n}" for n, wheels in found.items() for wheel in wheels)
        yield Finding(
            "CUDA wheels",
            False,
            f"the CUDA wheels have different versions ({others}), which nvcc does not support; "
            f'to install one version: pip install "cuda-toolkit[cudart,nvcc,nvrtc,nvvm]=={kept}.*"',
        )


OPENCL = "__kernel void k(__global int *out) { out[get_global_id(0)] = abs(get_local_id(0) - 3); }"


def _opencl() -> Finding:
    """Returns whether OpenCL C compiles with the clang that is there."""
    try:
        warploom.Device("h100").compile(OPENCL, "opencl")
        return Finding("OpenCL C", True, shutil.which("clang") or "a kernel was compiled")
    except (WarploomError, ImportError, OSError) as error:
        return Finding("OpenCL C", False, _first_line(error))


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _module(name: str, module: str, remedy: str) -> Finding:
    found = find_spec(module) is not None
    return Finding(name, found, "installed" if found else f"not installed: {remedy}")


def _tool(name: str) -> Finding:
    """Returns whether one of NVIDIA's tools is there, which reports of machine code need."""
    found = find_tool(name)
    return Finding(name, found is not None, found or f"not installed: {INSTALL}")
