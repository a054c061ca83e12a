"""Launches of programs in the commands that show one launch: captured, saved, and run again."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.clients.conftest import PROGRAMS
from warploom.clients.environment import libraries_are_built
from warploom.clients.nvcc import completed, found_nvcc, real_nvcc
from warploom.host.core_files.replaying import SavedLaunch
from warploom.observe.trace import Trace

Outcome = subprocess.CompletedProcess[str]

SOURCE = PROGRAMS / "scaled.cu"
NUMBA = PROGRAMS / "saxpy_twice.py"


@pytest.fixture(autouse=True)
def _needs_libraries() -> None:
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable that nvcc makes of SOURCE."""
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")
    target = tmp_path_factory.mktemp("built") / "scaled"
    command = [found_nvcc(), *completed([str(SOURCE), "-o", str(target)])]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.fixture(scope="module")
def saved(app: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core file of the second launch of `scale`: 4 blocks of 256 threads."""
    file = tmp_path_factory.mktemp("saved") / "scale.wlcore"
    chosen = ("--kernel", "^scale$", "--launch", "2", "--capture", str(file))
    outcome = warploom("profile", "--json", *chosen, str(app), "sum")
    assert outcome.returncode == 0, outcome.stderr
    assert launched(json.loads(outcome.stdout)) == (4, 256)
    assert "sum 4495500\n" in outcome.stderr  # 9 * (0 + 1 + ... + 999), printed by the program
    return file


def warploom(*arguments: str, **environment: str) -> Outcome:
    """Runs a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "warploom.cli", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )


def launched(report: dict[str, object]) -> tuple[object, object]:
    """The blocks of the grid and the threads of a block in a report."""
    text = json.dumps(report)
    grid = re.search(r'"Grid Size".*?"value": (\d+)', text)
    block = re.search(r'"Block Size".*?"value": (\d+)', text)
    assert grid is not None
    assert block is not None
    return int(grid[1]), int(block[1])


def succeeded(*arguments: str) -> Outcome:
    """Runs a command that ends well."""
    outcome = warploom(*arguments)
    assert outcome.returncode == 0, outcome.stderr
    return outcome


# ---- what is captured ----------------------------------------------------------------------------


def test_a_saved_launch_has_memory_constants_and_arguments_from_before_it(saved: Path) -> None:
    """The first launch has made y = 3 * x; the second one is to make x = 3 * y."""
    launch = SavedLaunch(saved)
    x, y = list(launch.buffers.values())[:2]
    index = np.arange(1000, dtype=np.float32)
    for _ in range(2):  # rewound, it is the same again
        ready = launch.ready()
        assert [*ready.buffers][:2] == ["y", "x"]  # the parameters of scale
        np.testing.assert_array_equal(x.view, index)
        np.testing.assert_array_equal(y.view, 3 * index)
        run = ready.launcher(**launch.options)
        np.testing.assert_array_equal(x.view, 9 * index)
        # 1,000 floats are 125 sectors each way. Of 32 warps, 31 are whole and one has 8 lanes.
        assert (run.counters.global_load_sectors, run.counters.global_store_sectors) == (125, 125)
        assert run.counters.thread_instructions_predicated_on > 0
    launch.memory.close()


def test_a_replay_counts_what_the_program_counted(app: Path, tmp_path: Path) -> None:
    """The report of the program as a whole has one launch of `total`, which is also captured."""
    whole, file = tmp_path / "whole.json", tmp_path / "total.wlcore"
    succeeded("run", "--json", str(whole), str(app))
    [expected] = [
        one for one in json.loads(whole.read_text("utf-8"))["kernels"] if "total" in one["kernel"]
    ]
    captured = succeeded("profile", "--json", "--kernel", "total", "--capture", str(file), str(app))
    again = succeeded("profile", "--json", str(file))
    for outcome in (captured, again):
        assert json.loads(outcome.stdout)["counters"] == expected["counters"]


def test_the_list_of_launches_begins_with_the_costliest(app: Path) -> None:
    """`scale` twice, then `total`; of 1,024 threads each, so that no other launch is chosen."""
    outcome = succeeded("profile", str(app))
    lines = [line.split() for line in outcome.stderr.splitlines() if line.startswith("  ")]
    rows = [(line[0], line[1], line[2], line[3]) for line in lines if line[0].isdigit()]
    assert sorted(rows) == [
        ("1", "scale", "8x1x1", "128x1x1"),
        ("2", "scale", "4x1x1", "256x1x1"),
        ("3", "total", "8x1x1", "128x1x1"),
    ]
    counts = [int(line[4].replace(",", "")) for line in lines if line[0].isdigit()]
    assert counts == sorted(counts, reverse=True)
    times = [" ".join(line[7:]) for line in lines if line[0] == "1"]
    # 1,000 floats are 125 sectors each way, 8 KB at 93 % of 3,352 GB/s: 2.57 ns. The eight blocks
    # have eight SMs of four schedulers, each of which issues an instruction a cycle at 1,980 MHz.
    assert times == [f"≥ {max(2.57, counts[0] / 32 / 1.98):.3g} ns"]
    assert "Duration is modelled" in outcome.stderr
    assert "warploom run --timeline" in outcome.stderr
    assert "Showing launch 1 (scale), the most expensive launch." in outcome.stderr
    assert "makes" not in succeeded("profile", "--launch", "3", str(app)).stderr


# ---- the commands --------------------------------------------------------------------------------

COMMANDS = [
    (("profile",), "Warp Instructions"),
    (("profile", "--time"), "Elapsed Cycles"),
    (("time",), "Elapsed Cycles"),
    (("sass",), "FMUL"),
    (("explore", "--runs", "4", "--workers", "1"), "4 orders, one result"),
    (("check",), "ERROR SUMMARY: 0 errors"),
    (("tune", "--space", "block=64,256", "--workers", "1"), "2 configurations, 0 did not run"),
]
"""Commands, and what each of them prints of a launch of `scale`."""


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=lambda value: str(value[0]))
def test_commands_take_a_saved_launch(saved: Path, command: tuple[str, ...], printed: str) -> None:
    assert printed in succeeded(*command, str(saved)).stdout


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=lambda value: str(value[0]))
def test_commands_take_an_executable(app: Path, command: tuple[str, ...], printed: str) -> None:
    """A word of the program's own that looks like an option of the command stays the program's."""
    outcome = succeeded(*command, "--kernel", "scale", "--launch", "1", str(app), "--json")
    assert printed in outcome.stdout
    assert "--json 4495500" in outcome.stderr


@pytest.mark.parametrize(
    ("program", "kernel"), [(SOURCE, "scale"), (NUMBA, "saxpy")], ids=["source", "numba"]
)
def test_commands_take_sources_with_a_main_and_numba(
    app: Path, program: Path, kernel: str, tmp_path: Path
) -> None:
    """The launch is captured once, and each command takes it; `view` shows the program's lines."""
    file, trace = tmp_path / "launch.wlcore", tmp_path / "launch.wl"
    options = ("--kernel", kernel, "--launch", "2")
    outcome = succeeded("time", *options, "--capture", str(file), str(program))
    assert "Elapsed Cycles" in outcome.stdout
    for command, _ in COMMANDS:
        assert kernel in succeeded(*command, str(file)).stdout or command[0] in (
            *("explore", "check", "tune"),
        )
    succeeded("view", "--save", str(trace), str(file))
    recorded = Trace.from_bytes(trace.read_bytes())
    assert [Path(one.name).name for one in recorded.sources] == [program.name]


def test_a_page_and_a_run_show_a_saved_launch(saved: Path, tmp_path: Path) -> None:
    page, trace, x = tmp_path / "page.html", tmp_path / "x.wl", tmp_path / "x.npy"
    files = ("--export", str(page), "--save", str(trace))
    succeeded("view", "--time", "--check", *files, str(saved))
    recorded = Trace.from_bytes(trace.read_bytes())
    assert recorded.modelled is not None
    assert len(recorded.warps) > 0
    assert page.stat().st_size > trace.stat().st_size
    outcome = succeeded("run", "--save", f"y={x}", str(saved))
    assert "y: float32[1000] = [ 0.,  9., 18., 27." in outcome.stdout
    np.testing.assert_array_equal(np.load(x), 9 * np.arange(1000))


def test_the_page_of_a_program_has_a_launch_of_each_kernel_in_one_shape(
    app: Path, tmp_path: Path
) -> None:
    """`scale` in two shapes and `total`: three launches, each with its own trace."""
    page = tmp_path / "page.html"
    outcome = succeeded("view", "--export", str(page), str(app))
    assert "you can switch to launches" in outcome.stderr
    text = page.read_text("utf-8")
    [shown] = re.findall(r'id="warploom-show">(.*?)</script>', text)
    launches = json.loads(shown)["launches"]
    assert sorted(launches) == [
        "1: scale<<<8, 128>>>",
        "2: scale<<<4, 256>>>",
        "3: total<<<8, 128>>>",
    ]
    packed = re.findall(r'id="warploom-trace(\d)">(.*?)</script>', text)
    assert [number for number, _ in packed] == ["0", "1", "2"]
    for name, (_, data) in zip(launches, packed, strict=True):
        trace = Trace.from_bytes(base64.b64decode(data))
        grid, block = trace.launch.grid[0], trace.launch.block[0]
        assert f": {trace.launch.name}<<<{grid}, {block}>>>" in name
    one = tmp_path / "one.html"
    succeeded("view", "--export", str(one), "--launch", "3", str(app))
    assert '"launches":[]' in one.read_text("utf-8")


def test_a_saved_launch_is_debugged_from_its_start(saved: Path) -> None:
    commands = ("-c", "break scaled.cu:10", "-c", "continue", "-c", "info cuda kernels")
    outcome = succeeded("debug", str(saved), "--batch", *commands)
    assert "Breakpoint 1, " in outcome.stdout
    assert "(4,1,1)  (256,1,1)  32  scale" in outcome.stdout


def test_tests_are_programs(tmp_path: Path) -> None:
    file = tmp_path / "test_gpu.py"
    file.write_text(
        "def test_it(gpu):\n"
        "    code = 'extern \"C\" __global__ void three(int *x) { x[threadIdx.x] = 3; }'\n"
        '    gpu.compile(code)["three"][2, 64](gpu.zeros(64, "i4"))\n',
        "utf-8",
    )
    outcome = succeeded("profile", "--json", sys.executable, "-m", "pytest", "-q", str(file))
    assert launched(json.loads(outcome.stdout)) == (2, 64)


@pytest.mark.parametrize("source", ["textures.cu", "pools.cu"])
def test_textures_and_pools_replay_to_the_same_counts(
    app: Path, source: str, tmp_path: Path
) -> None:
    file = tmp_path / "launch.wlcore"
    first = succeeded("profile", "--json", "--capture", str(file), str(PROGRAMS / source))
    again = succeeded("profile", "--json", str(file))
    assert json.loads(again.stdout)["counters"] == json.loads(first.stdout)["counters"]


def test_kernels_of_triton() -> None:
    """The launch of `softmax` has a block for each row of its matrix."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    program = PROGRAMS / "triton_programs.py"
    for command, printed in COMMANDS[:3]:
        assert printed in succeeded(*command, "--kernel", "^softmax$", str(program)).stdout


# ---- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--kernel", "nothing"), "launches no kernel with this name.* scale, total"),
        (("--launch", "9"), "--launch 9: .* makes only 3 launches"),
        (("--grid", "2"), "--grid: .* is a program, which configures its own launches"),
        (("--kernel", "("), "is not a valid regular expression"),
        (("--capture", "launch.txt"), "the file name must end in .wlcore"),
    ],
)
def test_launches_that_there_are_not(app: Path, options: tuple[str, ...], error: str) -> None:
    outcome = warploom("profile", *options, str(app))
    assert outcome.returncode == 2
    assert re.search(error, outcome.stderr), outcome.stderr


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        ("profile", ("--block", "64"), "--block: .* already specifies the launch"),
        ("time", ("--kernel", "scale"), "--kernel: .* has only one launch"),
        ("sass", ("--launch", "1"), "--launch applies only to programs, but .* is a saved launch"),
        ("tune", ("--space", "TILE=1,2"), "the kernels in .* are already compiled"),
    ],
)
def test_options_that_a_saved_launch_has_not(
    saved: Path, command: str, options: tuple[str, ...], error: str
) -> None:
    outcome = warploom(command, *options, str(saved))
    assert outcome.returncode == 2
    assert re.search(error, outcome.stderr), outcome.stderr


def test_a_program_without_launches(tmp_path: Path) -> None:
    program = tmp_path / "nothing.py"
    program.write_text("raise SystemExit(3)\n", "utf-8")
    outcome = warploom("time", str(program))
    assert outcome.returncode == 2
    assert "launched no kernel through CUDA and ended with status 3" in outcome.stderr
