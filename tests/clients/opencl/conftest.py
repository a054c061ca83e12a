"""Programs in C of OpenCL's host API, compiled with Debian's headers and linked with its loader."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from warploom.clients.environment import has_loader
from warploom.frontends.opencl_compilers import opencl_is_missing

PROGRAMS = Path(__file__).parent / "programs"

Compile = Callable[[str], Path]


@pytest.fixture
def compile_program(tmp_path: Path) -> Compile:
    """Compiles a program of `programs/`; skips where that cannot be."""
    missing = opencl_is_missing()
    if missing:
        pytest.skip(missing)
    compiler = shutil.which("gcc")
    if compiler is None or not Path("/usr/include/CL/cl.h").exists() or not has_loader({}):
        pytest.skip("needs gcc, opencl-headers and ocl-icd-opencl-dev")

    def compile_one(name: str) -> Path:
        target = tmp_path / Path(name).stem
        command = [compiler, "-g", "-Wall", "-Werror", str(PROGRAMS / name), "-o", str(target)]
        subprocess.run([*command, "-lOpenCL", "-lpthread", "-ldl"], check=True)
        return target

    return compile_one
