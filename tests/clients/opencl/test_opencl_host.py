"""OpenCL's host API: programs in C and Python find the platform and do what the specification says.

The programs check themselves; expected codes and orders are those of the OpenCL 3.0 specification.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warploom.clients.environment import LIBRARIES, OWN_LOADER, environment_for
from warploom.clients.settings import Settings
from warploom.frontends.opencl_compilers import opencl_is_missing

PROGRAMS = Path(__file__).parent / "programs"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "name", ["wrong_uses", "events", "destructors", "links", "both", "faults", "loader"]
)
def test_programs_in_c(name: str, compile_program: Callable[[str], Path], run_program: Run) -> None:
    ended = run_program([str(compile_program(f"{name}.c"))])
    assert (ended.stdout.splitlines()[-1:], ended.returncode) == (["0 wrong"], 0), ended.stdout


def test_launches_on_the_reference_machine(
    compile_program: Callable[[str], Path], run_program: Run
) -> None:
    ended = run_program([str(compile_program("links.c"))], engine="reference")
    assert (ended.stdout.splitlines()[-1:], ended.returncode) == (["0 wrong"], 0), ended.stdout


def test_copies_fills_and_maps_agree_with_numpy(run_program: Run) -> None:
    pytest.importorskip("pyopencl")
    if opencl_is_missing():
        pytest.skip(opencl_is_missing())
    ended = run_program([sys.executable, str(PROGRAMS / "copies.py")])
    assert ended.stdout == "ok\n", ended.stderr


SUITE = """
import numpy as np
import pyopencl as cl


def test_the_platform():
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    assert context.devices[0].platform.name == "Warploom (NVIDIA CUDA)"
    assert context.devices[0].compute_capability_major_nv == 8
    buffer, out = cl.Buffer(context, 0, 64), np.zeros(16, np.int32)
    cl.enqueue_fill_buffer(queue, buffer, np.int32(3), 0, 64)
    cl.enqueue_copy(queue, out, buffer)
    assert (out == 3).all()
"""


def test_pytest_runs_tests_that_use_pyopencl(tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    (tmp_path / "test_suite_of_opencl.py").write_text(SUITE, "utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--warploom=a100", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={n: v for n, v in os.environ.items() if n != "OCL_ICD_VENDORS"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_clinfo_lists_the_platform_and_its_device(run_program: Run) -> None:
    if shutil.which("clinfo") is None:
        pytest.skip("needs clinfo")
    ended = run_program(["clinfo"], device="rtx-2080-ti")
    text = ended.stdout
    assert ended.returncode == 0
    assert re.search(r"Number of platforms +1\n", text)
    assert re.search(r"Platform Name +Warploom \(NVIDIA CUDA\)\n", text)
    # An RTX 2080 Ti has 68 SMs (NVIDIA, Turing whitepaper) and compute capability 7.5.
    assert re.search(r"Max compute units +68\n", text)
    assert re.search(r"Compute Capability \(NV\) +7\.5\n", text)
    assert re.search(r"Device Version +OpenCL 3\.0 ", text)
    assert "error" not in text.lower().replace("error correction", "")


def test_a_device_of_old_has_the_version_that_its_driver_had(run_program: Run) -> None:
    if shutil.which("clinfo") is None:
        pytest.skip("needs clinfo")
    # NVIDIA's last driver for Kepler reports OpenCL 1.2.
    ended = run_program(["clinfo"], device="k40")
    assert re.search(r"Device Version +OpenCL 1\.2 ", ended.stdout)


def test_the_library_can_stand_in_for_a_loader(
    compile_program: Callable[[str], Path],
) -> None:
    program = compile_program("destructors.c")
    environment = environment_for(Settings())
    environment["LD_LIBRARY_PATH"] = f"{OWN_LOADER}:{LIBRARIES}"
    environment["OCL_ICD_VENDORS"] = "/nonexistent"
    ended = subprocess.run(
        [str(program)], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("0 wrong\n", "", 0)


def test_a_file_leads_loaders_to_the_platform(
    compile_program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Without `warploom run`, whose settings the environment does not have."""
    plain = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH")}
    plain["WARPLOOM_CACHE_DIR"] = str(tmp_path)
    printed = subprocess.run(
        [sys.executable, "-m", "warploom.cli", "opencl", "--icd"],
        env=os.environ | plain,
        capture_output=True,
        text=True,
        check=True,
    )
    file = printed.stdout.strip()
    assert file.endswith(".icd")
    ended = subprocess.run(
        [str(compile_program("destructors.c"))],
        env=plain | {"OCL_ICD_VENDORS": file, "WARPLOOM_DEVICE": "l4"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("0 wrong\n", "", 0)


def test_ctrl_c_ends_a_program_that_waits(compile_program: Callable[[str], Path]) -> None:
    program = compile_program("waits.c")
    with subprocess.Popen(
        [str(program)],
        env=environment_for(Settings()),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # not as in the background
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=20) == -signal.SIGINT
        finally:
            process.kill()


INTERRUPTED = """
import pyopencl as cl

context = cl.create_some_context(interactive=False)
user = cl.UserEvent(context)
print("waiting", flush=True)
try:
    user.wait()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_raises_in_a_program_in_python() -> None:
    pytest.importorskip("pyopencl")
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        env=environment_for(Settings()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert "Exception ignored" not in errors
    assert output == "interrupted\n"


def _checked(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "warploom.cli", "check", str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ,
    )


def test_check_finds_races_between_queues(compile_program: Callable[[str], Path]) -> None:
    program = compile_program("unordered.c")
    text = _checked(program).stderr
    assert "Race between queues: kernel copy reads" in text
    assert "what kernel fill writes" in text
    assert "Put the event of the first operation in the wait list of the second" in text
    assert "cuda" not in text
    assert _checked(program, "ordered").returncode == 0


def test_check_reports_kernels_and_calls(compile_program: Callable[[str], Path]) -> None:
    program = compile_program("careless.c")
    ended = _checked(program)
    text = ended.stdout + ended.stderr
    assert ended.returncode == 1, text
    assert "program_1.cl:3" in text  # the race, in the line of the kernel's source
    assert "clEnqueueReadBuffer returned CL_INVALID_VALUE" in text
    assert "clReleaseMemObject returned CL_INVALID_MEM_OBJECT: the buffer was released" in text
    assert re.search(r"called at \S*careless\.c:\d+", text)
    assert "1 kernel was never released" in text
    assert "1 command never completed" in text
    assert re.search(r"Leaked 256 bytes of buffer memory", text)
