"""Libraries that compute by machine code: a program that calls them learns which one it was."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import PROGRAMS, Outcome, RunProgram

COMPILER = shutil.which("cc") or shutil.which("gcc")

WORDS = "contains only machine code for GPUs"


def calls(run_program: RunProgram, folder: Path, name: str, function: str) -> Outcome:
    """Calls a function of library_calls.c, built as a library of this name, twice, and prints what
    it gives and the runtime's last error."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    library = folder / name
    source = PROGRAMS / "library_calls.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", source, "-o", library], check=True)
    program = (
        "import ctypes; driver = ctypes.CDLL('libcuda.so.1', ctypes.RTLD_GLOBAL)\n"
        "runtime = ctypes.CDLL('libcudart.so.13', ctypes.RTLD_GLOBAL)\n"
        f"function = ctypes.CDLL('{library}').{function}\n"
        "print(function(), function(), runtime.cudaPeekAtLastError())"
    )
    outcome = run_program([sys.executable, "-c", program])
    assert outcome.returncode == 0, outcome.stderr
    return outcome


def test_a_library_with_a_runtime_of_its_own_is_named_once(
    run_program: RunProgram, tmp_path: Path
) -> None:
    """What it asks for is not documented (801)."""
    outcome = calls(run_program, tmp_path, "libcufft.so.12", "asks_for_tables")
    assert outcome.stdout.split() == ["801", "801", "0"]
    assert outcome.stderr.count(f"libcufft.so.12 {WORDS}") == 1


def test_errors_of_nvidia_s_libraries_are_theirs(run_program: RunProgram, tmp_path: Path) -> None:
    """No code for the device (209). Left as the program's last error, it would fail the next
    launch, whose error CUB looks at: on a GPU cuRAND works, and leaves none."""
    outcome = calls(run_program, tmp_path, "libcurand.so.10", "loads_kernels")
    assert outcome.stdout.split() == ["209", "209", "0"]
    assert f"libcurand.so.10 {WORDS}" in outcome.stderr


def test_a_library_of_the_program_s_comes_with_advice(
    run_program: RunProgram, tmp_path: Path
) -> None:
    """Its errors are the program's."""
    outcome = calls(run_program, tmp_path, "libsolver.so", "loads_kernels")
    assert outcome.stdout.split() == ["209", "209", "209"]
    assert "make the compiler include PTX" in outcome.stderr
