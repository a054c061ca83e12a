"""Warploom on Windows and macOS, as far as Linux can show it: with their name in `sys.platform`,
and without what only Linux has in `os`, `mmap` and the standard library, kernels run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warploom.helpers.objects import SHIPPED

TESTS = Path(__file__).parent

PROGRAM = """
import asyncio, ctypes.util, inspect, mmap, multiprocessing, os, subprocess, sys, tempfile, uuid
import webbrowser
import llvmlite.binding, numba, rich.console, rich.progress, rich.table, typer, uvicorn
import starlette.applications

llvmlite.binding.llvm_version_info  # loads the library by the true name of the system
try:
    import cuda.bindings.nvrtc
    cuda.bindings.nvrtc.nvrtcVersion()
except ImportError:
    pass

windows = sys.argv[1] == "win32"
sys.platform = sys.argv[1]
gone = ["sched_getaffinity", "sched_setaffinity", "memfd_create"]
if windows:
    gone += ["getuid", "geteuid", "fork", "register_at_fork", "killpg", "setsid", "getpgid"]
for name in gone:
    if hasattr(os, name):
        delattr(os, name)
for name in dir(mmap):
    if name.startswith(("MAP_", "MADV_", "PROT_") if windows else ("MADV_", "MAP_NORESERVE")):
        delattr(mmap, name)
if windows:
    for name in ("resource", "fcntl", "pwd", "grp", "termios"):
        sys.modules[name] = None  # an import of it fails

import numpy as np
import warploom as wl
import warploom.cli.main
from warploom.helpers import objects
from warploom.lower.access import shared_functions
from warploom.machine.memory import reservation

objects.SHIPPED = shared_functions.SHIPPED = objects.Path(sys.argv[2])
if not windows:
    reservation._NO_RESERVE = 0x4000  # that of the kernel which really runs here
for engine in ("reference", "compiled"):
    gpu = wl.Device("h100", engine=engine)
    y = gpu.zeros(64, np.float32)
    gpu.load("examples/saxpy.cu")["saxpy"][2, 32](64, 2.0, np.ones(64, np.float32), y)
    assert y.copy_to_host().tolist() == [2.0] * 64, engine
from warploom.cli.doctor import REQUIRED, findings

assert all(one.works for one in findings() if one.name in REQUIRED)
"""


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_kernels_run_without_what_only_linux_has(platform: str, tmp_path: Path) -> None:
    # Names of helpers say for which platform they were compiled: for this one, which runs them.
    for path in SHIPPED.glob(f"*-{sys.platform}-*"):
        name = path.name.replace(f"-{sys.platform}-", f"-{platform}-")
        (tmp_path / name).symlink_to(path)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, platform, str(tmp_path)],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr


def test_no_test_starts_a_python_of_the_path() -> None:
    """There may be none, or another one: `sys.executable` is that of the tests."""
    bare = re.compile(r"\[\s*[\"']python[\d.]*[\"']\s*,")
    assert [file for file in TESTS.rglob("*.py") if bare.search(file.read_text("utf-8"))] == []
