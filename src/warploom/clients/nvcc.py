"""CUDA C++ with a `main`: built by NVIDIA's nvcc, in the one way that can be run here.

The nvcc is the one on the PATH, else the one of NVIDIA's wheels.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from warploom.clients.toolkit import PROGRAMS, STUBS, front_toolkit, missing_wheels, wheel_toolkit
from warploom.core.errors import CompileError
from warploom.frontends.hip import HIP_OPTIONS

RUNTIME = ("-cudart", "--cudart")
LINES = ("-lineinfo", "--generate-line-info", "-G", "--device-debug")
ARCHITECTURES = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code")

_GENERATED = re.compile(r"arch=compute_(\d+[af]?),code=(.+)")
"""The value of `-gencode`."""

OLDEST = ("-gencode", "arch=compute_75,code=[compute_75,sm_75]")
"""PTX for the oldest devices that nvcc knows, which runs on all; and their machine code, as nvcc
makes it by itself, so that ptxas refuses what it would refuse there."""

ONE_CODE = ("-cubin", "--cubin")
"""Options that take machine code for one architecture alone, which is what they make."""

INSTALL = 'pip install "warploom[nvcc]"'
"""What installs all wheels that make an nvcc; they do not depend on each other."""


def real_nvcc(path: str) -> str | None:
    """NVIDIA's own nvcc: the machine's on a PATH, else that of the wheels where there is gcc, which
    it calls; None without both."""
    found = next((nvcc for part in path.split(os.pathsep) if (nvcc := _nvcc_in(part))), None)
    if found is None and shutil.which("gcc", path=path) and (toolkit := wheel_toolkit()):
        found = str(toolkit / "bin" / "nvcc")
    return found


def _lacking() -> str:
    """Returns what the nvcc of the wheels lacks."""
    missing = missing_wheels()
    verb = "are" if len(missing) > 1 else "is"
    return f"{', '.join(missing)} {verb} not installed" if missing else "gcc was not found"


def _nvcc_in(folder: str) -> str | None:
    """Returns the nvcc in a folder of a PATH, if it is not Warploom's."""
    nvcc = shutil.which("nvcc", path=folder) if folder else None
    return None if nvcc is None or Path(nvcc).resolve().parent == PROGRAMS.resolve() else nvcc


def found_nvcc() -> str:
    """NVIDIA's own nvcc. Raises CompileError, which says what to install, where there is none."""
    nvcc = real_nvcc(os.environ.get("PATH", ""))
    if nvcc is None:
        raise CompileError(
            f"nvcc was not found: it is not on the PATH, and {_lacking()}. Install nvcc's wheels "
            f"with `{INSTALL}`, and the C++ compiler that nvcc calls (Debian: apt-get install g++)."
        )
    return nvcc


def completed(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments of nvcc with what makes a program that can be run here: the shared
    runtime and lines of the source, where they do not say otherwise, and PTX."""

    def has(options: Sequence[str]) -> bool:
        return any(word.split("=")[0] in options for word in arguments)

    added = [] if has(RUNTIME) else ["-cudart", "shared"]
    added += [] if has(LINES) else ["-lineinfo"]
    if has(ARCHITECTURES):
        added += _missing_ptx(arguments)
    elif not has(ONE_CODE):
        added += OLDEST
    if "-lcuda" in arguments:  # which only an installed toolkit has, among its stubs
        added += [f"-L{front_toolkit() / STUBS}"]
    return [*added, *arguments]


def _missing_ptx(arguments: Sequence[str]) -> list[str]:
    """Returns the option that adds PTX where `-gencode` asks for machine code alone."""
    asked = [found.groups() for word in arguments if (found := _GENERATED.search(word))]
    if not asked or any("compute_" in codes for _, codes in asked):
        return []
    oldest = min((architecture for architecture, _ in asked), key=_number)
    return ["-gencode", f"arch=compute_{oldest},code=compute_{oldest}"]


def _number(architecture: str) -> int:
    return int(architecture.rstrip("af"))


def language_options(source: Path) -> tuple[str, ...]:
    """Returns nvcc's options for the language of a source: HIP is compiled as CUDA C++."""
    return ("-x", "cu", *HIP_OPTIONS) if source.suffix == ".hip" else ()


def build_program(source: Path, options: Sequence[str] = ()) -> Path:
    """Builds the program of a source with options of nvcc, in the system's folder for temporary
    files; returns its path. Raises CompileError with nvcc's own words, or where there is no
    nvcc."""
    try:
        nvcc = found_nvcc()
    except CompileError as missing:
        raise CompileError(
            f"{source} has a main function, so it is a whole program and requires nvcc; {missing} "
            f"Without nvcc, launch one of its kernels: `warploom run {source} --kernel NAME --grid "
            "... --block ...`."
        ) from None
    text = source.read_bytes()
    name = hashlib.sha256(str(source.absolute()).encode() + b"\0" + text).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix="warploom-"))
    target = folder / f"{source.stem}-{name}"
    made = subprocess.run(
        [nvcc, *completed([*options, *language_options(source), str(source), "-o", str(target)])],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if made.returncode:
        raise CompileError(f"nvcc cannot compile {source}:\n{made.stderr.strip()}", made.stderr)
    return target
