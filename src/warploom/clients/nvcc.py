"""CUDA C++ with a `main`: built by the machine's own nvcc, in the one way that can be run here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from warploom.core.errors import CompileError

OPTIONS = ("-cudart", "shared", "-lineinfo", "-gencode", "arch=compute_75,code=compute_75")
"""The shared runtime, and PTX for the oldest devices that nvcc knows: it runs on all."""

PROGRAMS = Path(__file__).parent / "bin"
"""Where the nvcc is that programs find first."""


def real_nvcc(path: str) -> str | None:
    """The machine's own nvcc on a PATH."""
    folders = [part for part in path.split(os.pathsep) if Path(part) != PROGRAMS]
    return shutil.which("nvcc", path=os.pathsep.join(folders))


def build_program(source: Path) -> Path:
    """The program of a source, built in the system's folder for temporary files. Raises
    CompileError with nvcc's own words, or where there is no nvcc."""
    nvcc = real_nvcc(os.environ.get("PATH", ""))
    if nvcc is None:
        raise CompileError(
            f"{source} has a main, so it is a whole program, and building it needs nvcc, which is"
            f" not on the PATH. Without it, launch one of its kernels: `warploom run {source}"
            f" --kernel NAME --grid ... --block ...`."
        )
    text = source.read_bytes()
    name = hashlib.sha256(str(source.absolute()).encode() + b"\0" + text).hexdigest()[:16]
    folder = Path(tempfile.mkdtemp(prefix="warploom-"))
    target = folder / f"{source.stem}-{name}"
    made = subprocess.run(
        [nvcc, *OPTIONS, str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CompileError(f"nvcc does not take {source}:\n{made.stderr.strip()}", made.stderr)
    return target
