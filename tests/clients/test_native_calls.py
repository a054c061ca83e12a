"""Calls of the driver from native code in a Python process: from threads, and as it ends."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import PROGRAMS, RunProgram

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Builds the functions of native_calls.c; the driver that they call is found when they run."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    built = tmp_path / "libnative_calls.so"
    source = PROGRAMS / "native_calls.c"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-pthread", source, "-o", built], check=True)
    return built


def outcome(run_program: RunProgram, library: Path, statement: str) -> list[str]:
    program = (
        "import ctypes; driver = ctypes.CDLL('libcuda.so.1', ctypes.RTLD_GLOBAL)\n"
        f"held, free = ctypes.PyDLL('{library}'), ctypes.CDLL('{library}')\n{statement}"
    )
    done = run_program([sys.executable, "-c", program])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("visible", [None, "0"])
@pytest.mark.parametrize("lock", ["held", "free"])
def test_a_thread_asks_while_python_waits_for_it(
    lock: str,
    visible: str | None,
    run_program: RunProgram,
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One device, number 0. A function of PyDLL holds Python's lock until it returns. What the
    thread began, other calls find."""
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    statement = f"""print({lock}.in_a_thread())
context = ctypes.c_void_p()
print(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), bool(context))"""
    assert outcome(run_program, library, statement) == ["110", "0 True"]


@pytest.mark.parametrize("visible", ["", "-1", "1", "none"])
def test_a_thread_learns_that_the_device_is_hidden(
    visible: str, run_program: RunProgram, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA_ERROR_NO_DEVICE is 100; the variable is read once (CUDA C++ Programming Guide)."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert outcome(run_program, library, "print(held.init_in_a_thread())") == ["100"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    statement = f"""driver.cuInit(0)
import os; os.environ["CUDA_VISIBLE_DEVICES"] = {visible!r}
print(held.init_in_a_thread())"""
    assert outcome(run_program, library, statement) == ["0"]


def test_a_thread_that_waits_for_the_lock_of_its_caller_is_reported(
    run_program: RunProgram, library: Path
) -> None:
    """Python answers what is more than the first questions, so neither thread goes on."""
    program = (
        "import ctypes, signal; driver = ctypes.CDLL('libcuda.so.1', ctypes.RTLD_GLOBAL)\n"
        f"signal.alarm(25); ctypes.PyDLL('{library}').more_in_a_thread()"
    )
    done = run_program([sys.executable, "-c", program])
    assert done.returncode == -signal.SIGALRM
    assert done.stderr.count("has waited 10 s for Python's lock") == 1


def test_a_kernel_runs_in_the_first_thread_that_needs_threading(
    run_program: RunProgram, library: Path
) -> None:
    """`threading` counts the thread that first imports it as the main one."""
    program = (
        "import ctypes; driver = ctypes.CDLL('libcuda.so.1', ctypes.RTLD_GLOBAL)\n"
        f"print(ctypes.CDLL('{library}').launch_in_a_thread())"
    )
    done = run_program([sys.executable, "-c", program])
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr


def test_calls_after_python_has_ended(run_program: RunProgram, library: Path) -> None:
    """An H200 answers them with 0 until the process is gone."""
    assert outcome(run_program, library, "print(free.keep(), flush=True)") == [
        "0",
        "0 0 0 0 0 0 0 0 0 1 1 1 1 0",
    ]


def test_functions_for_other_libraries_are_exported(run_program: RunProgram, library: Path) -> None:
    """Clients look them up before they begin; called, they are not supported (801)."""
    assert outcome(run_program, library, "print(free.absent())") == ["1"]
