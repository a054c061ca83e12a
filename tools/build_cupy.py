"""Builds the modules of CuPy's wheel that have a CUDA runtime linked into them anew, with the
shared runtime, and puts them over the wheel's.

    pip install 'warploom[nvcc]' nvidia-curand cupy-cuda13x
    python tools/build_cupy.py

From CuPy's source distribution of the installed version, with the headers of NVIDIA's wheels; the
wheel's other modules stay. All five have to be replaced: CuPy ignores errors of CUB's, so that a
sum would be wrong without a word. nvcc takes some minutes for CUB and Thrust.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from build_driver import DESTINATION

from warploom.clients.toolkit import front_toolkit, missing_wheels, wheel_toolkit

WHEEL = "cupy-cuda13x"
CYTHON = "cython>=3.2,<3.3"


@dataclass(frozen=True)
class Extension:
    """A module of CuPy's: its path without an ending, the path of its CUDA C++ if it has any, and
    the libraries that it is linked with beside the runtime."""

    path: str
    kernels: str = ""
    libraries: tuple[str, ...] = ()


EXTENSIONS = (
    Extension("cupy_backends/cuda/api/runtime"),
    Extension("cupy/cuda/jitify", libraries=("libcuda.so.1", "libnvrtc.so.13")),
    Extension("cupy/random/_generator_api", "cupy/random/cupy_distributions"),
    Extension("cupy/cuda/cub", "cupy/cuda/cupy_cub"),
    Extension("cupy/cuda/thrust", "cupy/cuda/cupy_thrust"),
)
"""The modules that have a runtime linked into them."""

DIRECTIVES = (
    *("binding=False", "c_api_binop_methods=True", "freethreading_compatible=True"),
    "warn.deprecated.IF=False",
)
CONSTANTS = "CUPY_USE_CUDA_PYTHON=0,CUPY_CUDA_VERSION={version},CUPY_HIP_VERSION=0"
"""What CuPy's own build gives to Cython."""

INCLUDED = ("_cccl/libcudacxx", "_cccl/thrust", "_cccl/cub", "", "_jitify")
"""Folders of headers, in `cupy/_core/include/cupy` but the empty one, which is the one above."""

DEFINES = (
    *("-D_FORCE_INLINES=1", "-DNPY_TARGET_VERSION=NPY_2_0_API_VERSION"),
    "-DJITIFY_PRINT_LOG=0",
)
DEVICE = ("-gencode", "arch=compute_75,code=compute_75", "--expt-relaxed-constexpr")
"""PTX for the oldest devices that nvcc knows, which runs on all, and no machine code."""


def source(folder: Path) -> Path:
    """Downloads and unpacks the sources of the version that is installed; returns their folder."""
    version = importlib.metadata.version(WHEEL)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--quiet", "download", "--no-deps"),
            *("--no-binary", "cupy", "-d", str(folder), f"cupy=={version}"),
        ],
        env={**os.environ, "CUPY_INSTALL_USE_STUB": "1"},  # pip asks its setup.py for metadata
        check=True,
    )
    with tarfile.open(folder / f"cupy-{version}.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder / f"cupy-{version}"


def headers(source: Path) -> list[str]:
    """Returns the options for folders of headers."""
    import numpy as np

    own = source / "cupy" / "_core" / "include"
    folders = [own / "cupy" / name if name else own for name in INCLUDED]
    folders += [source, source / "cupy_backends", Path(np.get_include())]
    folders += [Path(sysconfig.get_path("include")), front_toolkit() / "include"]
    return [f"-I{folder}" for folder in folders]


def version_of_headers() -> int:
    """Returns the CUDA version of the headers, as they write it."""
    text = (front_toolkit() / "include" / "cuda.h").read_text("utf-8")
    return int(text.partition("#define CUDA_VERSION ")[2].split()[0])


def build(extension: Extension, source: Path) -> Path:
    """Builds an extension in the folder of the sources; returns the file of the module."""
    stem = source / extension.path
    made = stem.with_name(stem.name + sysconfig.get_config_var("EXT_SUFFIX"))
    constants = CONSTANTS.format(version=version_of_headers())
    directives = [word for directive in DIRECTIVES for word in ("-X", directive)]
    run(
        *(sys.executable, "-m", "cython", "--cplus", "-3", *directives, "-E", constants),
        *(f"{stem}.pyx", "-o", f"{stem}.cpp"),
    )
    options = ["-O2", "-w", "-std=c++17", *DEFINES, *headers(source)]
    objects: list[str] = []
    if extension.kernels:
        objects.append(f"{source / extension.kernels}.o")
        run(
            *(str(front_toolkit() / "bin" / "nvcc"), "-c", *DEVICE, *options),
            *("-Xcompiler", "-fPIC", f"{source / extension.kernels}.cu", "-o", objects[0]),
        )
    libraries = [str(DESTINATION / name) for name in ("libcudart.so.13", *extension.libraries)]
    run(
        *("g++", "-shared", "-fPIC", *options, '-DCYTHON_EXTERN_C=extern "C"'),
        *(f"-DCUPY_CACHE_KEY={cache_key()}", f"{stem}.cpp", *objects, *libraries),
        *("-o", str(made)),
    )
    return made


def cache_key() -> str:
    """Returns the key that the wheel's modules put before what they cache."""
    asked = "import cupy._core.core as core; print(core.CUPY_CACHE_KEY)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", asked], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def run(*command: str) -> None:
    toolkit = wheel_toolkit()
    path = f"{toolkit}/bin:{os.environ['PATH']}" if toolkit else os.environ["PATH"]
    environment = {**os.environ, "WARPLOOM_PYTHON": sys.executable, "PATH": path}
    subprocess.run(command, env=environment, check=True)


def main() -> None:
    """Builds the modules, and puts them over the wheel's."""
    if missing := missing_wheels():
        sys.exit(f"these wheels are missing: {', '.join(missing)}: pip install 'warploom[nvcc]'")
    found = importlib.util.find_spec("cupy")
    if found is None or found.origin is None:
        sys.exit(f"CuPy is not installed: pip install {WHEEL}")
    if importlib.util.find_spec("Cython") is None:
        subprocess.run([sys.executable, "-m", "pip", "--quiet", "install", CYTHON], check=True)
    site = Path(found.origin).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        sources = source(Path(folder))
        made = [build(extension, sources) for extension in EXTENSIONS]
        for module in made:
            shutil.move(module, site / module.relative_to(sources))


if __name__ == "__main__":
    main()
