"""What somebody types first: versions, help, shapes, and mistakes that must not pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import warploom as wl
from warploom.cli import doctor
from warploom.cli.main import main
from warploom.cli.progress import ProgressLine
from warploom.report.render import render

SOURCE = """__global__ void k(int n, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i;
}
"""


def called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> tuple[int, str, str]:
    """Returns the exit status of the command line, and what it printed."""
    monkeypatch.setattr(sys, "argv", ["warploom", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "k.cu"
    file.write_text(SOURCE, "utf-8")
    return file


def test_the_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = called(capsys, monkeypatch, "--version")
    assert (code, out) == (0, f"warploom {wl.__version__}\n")


def test_the_module_is_the_command() -> None:
    command = [sys.executable, "-m", "warploom", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"warploom {wl.__version__}\n"


def test_help_is_short_and_in_groups(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in ("-h", "--help"):
        code, out, _ = called(capsys, monkeypatch, "run", option)
        assert code == 0
        titles = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
        assert titles[:3] == ["Arguments", "Launch", "Device"]
        assert out.index("--grid") < out.index("Device:") < out.index("--engine")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("xyzzy",), "error: No such command 'xyzzy'. See `warploom --help`."),
        (("run", "k.cu", "--gird", "2"), "See `warploom run --help`."),
        (("run", "k.cu", "--grid", "two"), "--grid 'two' is not valid. Write numbers"),
        (("run", "k.cu", "--max-instructions", "-3"), "error: Invalid value"),
        (("run", "k.cu", "--arg", "f64[8]=zeros", "--arg", "f64[8]=zeros"), "takes a number"),
        (("run", "k.cu", "--arg", "8", "--arg", "f64[8]=zeros"), "the buffer holds float64"),
        (
            ("run", "k.cu", "--arg", "8", "--arg", "i32[1000000000000]=zeros"),
            "not have enough memory for",
        ),
        (
            ("run", "k.cu", "--arg", "1e400", "--arg", "i32[8]=zeros"),
            "greater than the largest f64",
        ),
        (
            ("run", "k.cu", "--arg", "o:i32[8]=ones", "--arg", "o:i32[8]=ones"),
            "already has the name o",
        ),
        (("learn", "bank", "--check", "k.cu"), "Did you mean 'banks'?"),
        (("tune", "k.cu", "--space", "blok=32", "--arg", "8"), "Did you mean block?"),
    ],
)
def test_mistakes_are_errors_in_one_line(
    arguments: tuple[str, ...],
    output: str,
    kernel: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(kernel.parent)
    code, _, err = called(capsys, monkeypatch, *arguments)
    assert code in (2, 4)
    assert err.startswith("error: ")
    assert output in err
    assert "Traceback" not in err


def test_a_folder_that_is_missing_is_noticed_before_the_launch(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = ("run", str(kernel), "--arg", "8", "--arg", "out:i32[8]=zeros")
    code, out, err = called(capsys, monkeypatch, *launch, "--save", "out=/no/such/folder/a.npy")
    assert (code, out) == (2, "")
    assert "the folder /no/such/folder does not exist" in err


def test_ptx_of_a_version_that_does_not_exist_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.ptx"
    head = ".version 99.0\n.target sm_70\n.address_size 64\n"
    file.write_text(f"{head}.visible .entry k() {{ ret; }}\n", "utf-8")
    code, _, err = called(capsys, monkeypatch, "run", str(file))
    assert code == 3
    assert "unknown PTX version 99.0" in err


def test_shapes_are_written_alike_everywhere(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 x 2 blocks; the threads of the second row write what those of the first do."""
    launch = ("run", str(kernel), "--grid", "2x2", "--block", "32x1", "--json")
    code, out, _ = called(capsys, monkeypatch, *launch, "--arg", "64", "--arg", "o:i32[8x8]=zeros")
    assert code == 0
    assert json.loads(out)["buffers"]["o"]["shape"] == [8, 8]


@pytest.mark.parametrize("width", ["60", "80"])
def test_every_command_is_shown_with_its_whole_summary(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = called(capsys, monkeypatch, "--help")
    assert code == 0
    groups = ("Run:", "Find errors:", "Measure:", "Watch and learn:", "Look up:")
    assert [line for line in out.splitlines() if line in groups] == list(groups)
    entries = out[out.index("\nRun:") : out.index("Exit status")]
    lines = [line for line in entries.splitlines() if line.strip() and line[0] == " "]
    assert all(line.endswith(".") and len(line) <= int(width) for line in lines)


def test_results_name_the_kernel_and_the_shape_as_the_source_does(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = called(
        capsys, monkeypatch, "run", str(kernel), "--arg", "8", "--arg", "out:i32[2x4]=zeros"
    )
    assert code == 0
    assert "out: int32[2x4] = [0, 1, 2, 3, 4, 5, 6, 7]" in out
    assert "\nk on H100" in out


@pytest.mark.parametrize("width", [60, 80])
def test_a_report_fits_a_narrow_terminal_with_its_values(kernel: Path, width: int) -> None:
    gpu = wl.Device("v100")
    out = gpu.zeros(1000, "i4")
    run = gpu.load(kernel)["k"][4, 256](1000, out)
    console = Console(width=width, record=True, file=StringIO())
    render(run.summary, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    for value in ("1,024", "100.000", "(256, 1, 1)"):
        assert value in text
    assert "out[i] = i;" in text
    assert "…" not in text[text.index("Source Counters") :]


def test_large_counts_keep_their_digits_in_a_narrow_table(tmp_path: Path) -> None:
    """2^20 threads are 32,768 warps, which load 4 sectors each: 131,072, and store as many."""
    file = tmp_path / "add.cu"
    text = "__global__ void k(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }"
    file.write_text(text, "utf-8")
    gpu = wl.Device("v100")
    run = gpu.load(file)["k"][4096, 256](gpu.zeros(1 << 20, "f4"))
    console = Console(width=60, record=True, file=StringIO())
    render(run.summary, console)
    counters = console.export_text().partition("Source Counters")[2]
    row = next(line for line in counters.splitlines() if line.split()[:1] == ["add.cu:1"])
    assert row.split()[3:5] == ["131k", "131k"]
    assert "…" not in counters.partition("add.cu:1 ")[0] + row


def test_progress_says_what_happens() -> None:
    line = ProgressLine("k")
    assert line._status_text() == "compiling"  # pyright: ignore[reportPrivateUsage]
    line(3, 10)
    assert line._status_text() == "3 of 10 blocks started"  # pyright: ignore[reportPrivateUsage]
    line(10, 10)
    # All have begun; the last ones may run for ever.
    assert line._status_text() == "10 of 10 blocks started"  # pyright: ignore[reportPrivateUsage]


def test_doctor_says_what_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = called(capsys, monkeypatch, "doctor", "--json")
    assert code == 0
    works = {one["name"]: one["works"] for one in json.loads(out)}
    assert works["reference machine"]
    assert works["compiled engine"]


@pytest.mark.parametrize("nvcc", ["13.2.86", "13.5.37"])
def test_doctor_reports_wheels_of_two_cuda_versions(
    nvcc: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch asks for the runtime of one version, and nvcc refuses headers of another."""
    versions = {"nvidia-cuda-runtime": "13.2.86", "nvidia-cuda-nvcc": nvcc}

    def version(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(doctor, "version", version)
    _, out, _ = called(capsys, monkeypatch, "doctor", "--json")
    found = next(one for one in json.loads(out) if one["name"] == "CUDA wheels")
    assert found["works"] is (nvcc == "13.2.86")
    assert found["works"] or '"cuda-toolkit[cudart,nvcc,nvrtc,nvvm]==13.2.*"' in found["message"]


@pytest.mark.skipif(os.name != "posix", reason="the clang that fails is a script")
def test_doctor_compiles_opencl_instead_of_looking_for_a_clang(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = tmp_path / "clang"
    clang.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    clang.chmod(0o755)
    monkeypatch.setenv("WARPLOOM_CLANG", str(clang))
    _, out, _ = called(capsys, monkeypatch, "doctor", "--json")
    assert {one["name"]: one["works"] for one in json.loads(out)}["OpenCL C"] is False
