"""Programs of CUDA C++ that nvcc builds: the ways to build them, and the calls of the runtime that
programs of others make. Without nvcc (on the PATH, or of NVIDIA's wheels) they are skipped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import warploom as wl
from tests.clients.conftest import PROGRAMS, Build, RunProgram
from warploom.clients.environment import environment_for, libraries_are_built
from warploom.clients.nvcc import completed, found_nvcc, real_nvcc
from warploom.clients.settings import Settings
from warploom.clients.toolkit import missing_wheels, wheel_toolkit

PTX, BOTH = "arch=compute_75,code=compute_75", "arch=compute_75,code=[compute_75,sm_75]"


@pytest.mark.parametrize("code", [PTX, BOTH])
def test_device_code_of_several_object_files(
    build: Build, run_program: RunProgram, code: str
) -> None:
    """2 * 1 + 100, 2 * 31 + 100; 32 threads have counted. nvcc links machine code on its own where
    there is some: then the linked fat binary has no PTX, and that of the object files is linked."""
    options = ("-rdc=true", "-gencode", code)
    outcome = run_program(build("linked_main.cu", "linked_part.cu", options=options))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "102 162 32\n"


def test_default_streams_of_threads(build: Build, run_program: RunProgram) -> None:
    program = build("runtime.cu", options=("-default-stream", "per-thread"))
    outcome = run_program(program, "1000")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == ["saxpy 2000", "constant 6", "graph 6 7", "error 5"]


@pytest.mark.parametrize(
    ("source", "options", "printed"),
    [
        (
            "arrays.cu",
            (),
            # 8x4 texels count up by rows. Row 1 from texel 4: 12, and 7 further 19. The second
            # array: rows 1 to 3 of the first, then texels 2 and 3 behind its first one.
            # A graph of three copies is launched twice, with another first float each time.
            "info 32 1 8 4 0 0; stretch 12 19; past the end 1; arrays 8 31 2 3; column 2 26;"
            " graph 1 31; graph 2 31",
        ),
        ("pools.cu", (), "pool 1 128 7; graph 128 6; trimmed 0"),
        (
            "conditional.cu",
            ("-rdc=true",),
            "5 0 10 -7; 7",  # five rounds, case 1, the side for zero; then two rounds more
        ),
        ("devices.cu", (), "peers 0 1 1 1; preferences 0 0 0; copied 31"),
    ],
)
def test_calls_of_the_runtime(
    build: Build, run_program: RunProgram, source: str, options: tuple[str, ...], printed: str
) -> None:
    outcome = run_program(build(source, options=options))
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.splitlines() == printed.split("; ")
    assert "not there" not in outcome.stderr


NOT_READY, LAUNCH_TIMEOUT = 600, 702


def test_kernels_of_two_streams_wait_for_each_other(build: Build, run_program: RunProgram) -> None:
    """While the first waits, so does what follows it in its stream and after its event: a third
    stream (CUDA Programming Guide, "Streams"). The second stream is idle."""
    outcome = run_program(build("streams_that_wait.cu"))
    assert outcome.returncode == 0, outcome.stderr
    held_up, result, end = outcome.stdout.splitlines()
    assert held_up == f"{NOT_READY} {NOT_READY} 0 {NOT_READY}"
    assert (result, end) == ("0", "1 1; 0 0")


def test_kernels_of_one_stream_that_wait_for_each_other_are_a_deadlock(
    build: Build, run_program: RunProgram
) -> None:
    outcome = run_program([*build("streams_that_wait.cu"), "one"])
    assert outcome.stdout.splitlines()[1:] == [f"{LAUNCH_TIMEOUT}"]
    assert "launches queued behind it in its stream: 1" in outcome.stderr
    assert outcome.stderr.count("streams_that_wait.cu:9") == 1


def test_a_kernel_waits_for_the_host(build: Build, run_program: RunProgram) -> None:
    outcome = run_program(build("kernel_that_serves.cu"))
    assert outcome.stdout == "2 4 6 0\n", outcome.stderr


def test_lines_are_those_of_the_source_or_it_is_said_how(
    build: Build, run_program: RunProgram
) -> None:
    outcome = run_program(build("unguarded.cu"))
    assert outcome.returncode == 0, outcome.stderr
    assert "unguarded.cu:4 in kernel fill" in outcome.stderr
    assert "-lineinfo" not in outcome.stderr
    source = str(PROGRAMS / "unguarded.cu")
    target = build("unguarded.cu")[0]
    plain = ["-cudart", "shared", "-arch=sm_75", source, "-o", target]
    subprocess.run([found_nvcc(), *plain], check=True)
    outcome = run_program([target])
    assert outcome.returncode == 0, outcome.stderr
    assert "compile with -lineinfo" in outcome.stderr


def test_the_report_follows_the_programs_own_words(build: Build) -> None:
    """In one pipe: C's library keeps what is printed until the process ends."""
    outcome = subprocess.run(
        build("waits.cu"),
        env=environment_for(Settings(device="a100", report="short")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert outcome.stdout.startswith("its own wordsWarploom ran 1 kernel")
    [line] = [line for line in outcome.stdout.splitlines() if "1 launch of 1x1x1" in line]
    assert " s after " in line
    assert line.endswith("s of compilation")


def test_a_program_that_is_ended_has_its_report(build: Build) -> None:
    process = subprocess.Popen(
        [*build("waits.cu"), "wait"],
        env=environment_for(Settings(device="a100", report="short")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.read(len("its own words")) == "its own words"
    process.terminate()
    _, output = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "fill, 1 launch of 1x1x1 blocks" in output


def test_a_compiler_of_wheels_alone(tmp_path: Path, run_program: RunProgram) -> None:
    if missing := missing_wheels():
        pytest.skip(f"{', '.join(missing)} are not installed")
    toolkit = wheel_toolkit()
    assert toolkit is not None
    if not (toolkit / "include" / "cuda_profiler_api.h").exists():
        pytest.skip("nvidia-cuda-profiler-api is not installed")
    nvcc, target = str(toolkit / "bin" / "nvcc"), str(tmp_path / "program")
    arguments = completed(["-rdc=true", str(PROGRAMS / "devices.cu"), "-lcuda", "-o", target])
    subprocess.run([nvcc, *arguments], check=True)
    assert run_program([target]).returncode == 0


def test_without_a_compiler_its_wheels_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("warploom.clients.nvcc.wheel_toolkit", lambda: None)
    with pytest.raises(wl.CompileError, match=r'pip install "warploom\[nvcc\]"'):
        found_nvcc()


def test_the_driver_is_linked_without_an_installed_toolkit() -> None:
    folder, *_ = completed(["-arch=sm_80", "x.cu", "-lcuda"])[-4:]
    assert folder.startswith("-L")
    assert Path(folder.removeprefix("-L"), "libcuda.so").resolve().name == "libcuda.so.1"


def test_arguments_say_otherwise() -> None:
    """What a command line says of the runtime, lines and architectures stays as it is; PTX is added
    where it asks for machine code alone."""
    given = ["--cudart=static", "-G", "-gencode=arch=compute_80,code=[compute_80,sm_80]", "x.cu"]
    assert completed(given) == given
    given = ["-cudart", "static", "-lineinfo", "-arch=sm_80", "x.cu"]
    assert completed(given) == given
    machine = ["-gencode", "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_80,code=sm_80"]
    given = ["-cudart=static", "-lineinfo", *machine, "x.cu"]
    assert completed(given) == ["-gencode", "arch=compute_80,code=compute_80", *given]


def test_nvcc_refuses_what_ptxas_refuses(tmp_path: Path) -> None:
    """A block has 48 KB of static shared memory (CUDA C++ Programming Guide, "Shared Memory")."""
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("nvcc was not found")
    source = tmp_path / "large.cu"
    for bytes_of_block, taken in ((0xC000, True), (0x10000, False)):
        source.write_text(
            f"__global__ void k(char *o) {{ __shared__ char s[{bytes_of_block}];\n"
            "s[threadIdx.x] = o[threadIdx.x]; __syncthreads(); o[threadIdx.x] = s[9]; }\n",
            "utf-8",
        )
        arguments = completed(["-c", str(source), "-o", str(tmp_path / "large.o")])
        made = subprocess.run([found_nvcc(), *arguments], capture_output=True, check=False)
        assert (made.returncode == 0) is taken
        assert taken or b"uses too much shared data (0x10000 bytes, 0xc000 max)" in made.stderr


def test_a_timeline_shows_how_streams_of_a_program_overlap(
    build: Build, run_program: RunProgram
) -> None:
    """All 256 blocks of the four kernels fit on an A100, which copies in one direction one at a
    time: the kernels begin together, each copy begins when its kernel and the copy before it have
    ended."""
    program = build("streams.cu")
    outcome = run_program(program, timeline=True)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "3\n"
    rows = [line.split() for line in outcome.stderr.splitlines()[3:]]
    kernels = [row for row in rows if "fill(int*," in row]
    copies = [row for row in rows if "copy" in row]
    assert [row[2] for row in kernels] == ["1", "2", "3", "4"]
    assert [row[0] for row in kernels] == ["0.0"] * 4
    assert [row[0] for row in copies[1:]] == [row[1] for row in copies[:-1]]
    # 65,536 bytes at 24 GB/s (2.7 us) beyond 10 us.
    assert float(copies[0][1]) - float(copies[0][0]) == pytest.approx(12.7, abs=0.11)


def test_a_program_of_hip(tmp_path: Path) -> None:
    """1.5 + 2; memory of the host is no memory of the device."""
    if not libraries_are_built() or real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("nvcc was not found, or no stand-in libraries")
    command = [sys.executable, "-m", "warploom.cli", "run", str(PROGRAMS / "vadd.hip")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "3.5 3.5 32; cudaErrorInvalidValue\n"
    assert "vadd, 1 launch of 4x1x1 blocks of 256x1x1" in outcome.stderr


def test_the_host_waits_for_all_streams_of_a_device(build: Build, run_program: RunProgram) -> None:
    """What comes after cudaDeviceSynchronize() comes after all that was issued before it."""
    outcome = run_program(build("device_waits.cu"), sanitize="race")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "2\n"
    assert "ERROR SUMMARY: 0 errors, 0 warnings" in outcome.stderr
