"""Finds what compiles OpenCL C: a clang for NVPTX, of the machine or of the wheel `ziglang`, and
NVIDIA's libdevice."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from warploom.core.errors import CompileError

NEWEST_CLANG, OLDEST_CLANG = 25, 16
"""Before 16, LLVM's pointers have types, which differ for images."""

INSTALL = "pip install 'warploom[opencl]'"

Command = tuple[str, ...]


def opencl_is_missing() -> str:
    """Returns what OpenCL C lacks on this machine and how to install it; empty for nothing."""
    try:
        for find in (clang, libdevice):
            find()
    except CompileError as missing:
        return str(missing)
    return ""


def clang() -> Command:
    """Returns the command of the clang that WARPLOOM_CLANG names, else of the newest on the PATH
    that compiles for NVPTX, else of the wheel `ziglang`. Raises CompileError where there is
    none."""
    chosen = os.environ.get("WARPLOOM_CLANG")
    if chosen:
        found = shutil.which(chosen)
        if found and _usable((found,)):
            return (found,)
        why = "cannot compile for NVPTX or is too old" if found else "does not exist"
        raise CompileError(
            f"WARPLOOM_CLANG names {chosen}, which {why}: set the variable to the path "
            f"of clang {OLDEST_CLANG} or later."
        )
    for command in _installed():
        if _usable(command):
            return command
    raise CompileError(
        f"OpenCL C requires clang {OLDEST_CLANG} or later with the NVPTX target, but none is "
        f"installed. Run `{INSTALL}`, which installs the ziglang wheel, or install clang from your "
        "Linux distribution (Debian: apt-get install clang-19). Or set WARPLOOM_CLANG to the path "
        "of a clang executable."
    )


def _installed() -> Iterator[Command]:
    for name in (*(f"clang-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)), "clang"):
        if found := shutil.which(name):
            yield (found,)
    wheel = importlib.util.find_spec("ziglang")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if found := shutil.which("zig", path=folder):
            yield (found, "clang")


def libdevice() -> Path:
    """Returns NVIDIA's library of mathematics; CompileError where it is not installed."""
    try:
        roots = list(importlib.import_module("nvidia.cu13").__path__)
    except ImportError:
        roots = []
    for root in roots:
        if (found := Path(root) / "nvvm" / "libdevice" / "libdevice.10.bc").exists():
            return found
    raise CompileError(
        "OpenCL C needs NVIDIA's libdevice for mathematical functions, but libdevice is not "
        f"installed. Run `{INSTALL}`, which installs the nvidia-nvvm wheel."
    )


def _usable(command: Command) -> bool:
    return _version(command) >= OLDEST_CLANG and bool(_known(command))


@cache
def _version(command: Command) -> int:
    """Returns the major version of a clang; 0 for what is none."""
    said = _said(command, "--version")
    found = re.search(r"\bclang version (\d+)", said)
    return int(found[1]) if found else 0


@cache
def _known(command: Command) -> tuple[int, ...]:
    """Returns the architectures that a clang compiles for."""
    said = _said(command, "--print-supported-cpus", "--target=nvptx64")
    return tuple(int(n) for n in re.findall(r"\bsm_(\d+)\s", f"{said}\n"))


def _said(command: Command, *options: str) -> str:
    try:
        ended = subprocess.run(
            [*command, *options],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:
        return ""
    return ended.stdout + ended.stderr


def architecture(command: Command, compute_capability: tuple[int, int]) -> int:
    """Returns the newest architecture that a clang compiles for and the device can run, else the
    oldest."""
    known, wanted = _known(command), 10 * compute_capability[0] + compute_capability[1]
    return max((one for one in known if one <= wanted), default=min(known))
