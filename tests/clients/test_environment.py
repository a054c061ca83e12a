"""What surrounds a program: the shell, libraries that are missing, and the report at the end."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import warploom as wl
from tests.clients.conftest import PROGRAMS, RunProgram
from warploom.clients import environment
from warploom.clients.settings import Settings

TOOLS = Path(__file__).parents[2] / "tools"
MAIN = "from warploom.cli.main import main; main()"


def test_every_program_in_the_shell_finds_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    if not environment.libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    monkeypatch.setenv("SHELL", "/bin/sh")
    command = [sys.executable, "-c", MAIN, "shell", "--device", "rtx-2080-ti", "--report", "short"]
    typed = f"'{sys.executable}' -W ignore '{PROGRAMS}/saxpy_twice.py'\nexit 7\n"
    ended = subprocess.run(
        command, input=typed, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 7, ended.stderr
    assert "ran 1 kernel on" in ended.stderr
    assert "2080 Ti" in ended.stderr


@pytest.mark.parametrize(
    ("visible", "code", "count"),
    [
        ("0", 0, 1),
        ("0,1", 0, 1),
        ("GPU-6fd4a77d", 0, 1),
        ("", 100, 0),
        ("-1", 100, 0),
        ("1,0", 100, 0),
    ],
)
def test_the_device_can_be_hidden(
    monkeypatch: pytest.MonkeyPatch, run_program: RunProgram, visible: str, code: int, count: int
) -> None:
    """CUDA C++ Programming Guide, "CUDA Environment Variables": devices from the first invalid one
    on are hidden. 100 is CUDA_ERROR_NO_DEVICE and cudaErrorNoDevice."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = run_program([sys.executable, "-W", "ignore", "-c", COUNT_DEVICES])
    assert found.stdout.split() == [str(code), str(code), str(count)], found.stderr


COUNT_DEVICES = """
import ctypes
count = ctypes.c_int(7)
print(ctypes.CDLL("libcuda.so.1").cuInit(0))
print(ctypes.CDLL("libcudart.so.13").cudaGetDeviceCount(ctypes.byref(count)))
print(count.value)
"""


def test_without_a_compiler_the_package_is_built_without_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    build_driver = importlib.import_module("build_driver")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert not build_driver.build(tmp_path / "lib")
    output = capsys.readouterr().err
    assert "no C compiler" in output
    assert "from warploom import cuda" in output


def test_what_to_do_about_missing_libraries_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "LIBRARIES", tmp_path)
    with pytest.raises(wl.WarploomError, match=r"Install gcc or clang.*from warploom import cuda"):
        environment.environment_for(Settings("a100"))


def test_a_statically_linked_runtime_gets_the_remedy(run_program: RunProgram) -> None:
    outcome = run_program("driver_odds.py", "static_runtime")
    assert outcome.stdout == "0 801 None\n"
    assert "no kernel ran" in outcome.stderr
    assert "-cudart shared" in outcome.stderr


def test_what_is_not_there_is_named_once(run_program: RunProgram) -> None:
    outcome = run_program("driver_odds.py", "not_there")
    assert outcome.stdout == "0 801 801\n"
    assert outcome.stderr.count("cuMulticastCreate") == 1


def test_first_versions_with_the_same_arguments_are_served(run_program: RunProgram) -> None:
    assert run_program("driver_odds.py", "first_versions").stdout == "0 0 0\n"


def test_addresses_by_version(run_program: RunProgram) -> None:
    """cuMemAlloc has its 64-bit form since CUDA 3.2; cuLaunchKernelEx is there since 11.8, and for
    an earlier version there is no address and no error."""
    outcome = run_program("driver_odds.py", "addresses")
    assert outcome.stdout.splitlines() == [
        "0 True True",
        "0 True False",
        "0 False False",
        "500 False False",
        "True",
    ]


def test_a_hidden_sitecustomize_runs(
    run_program: RunProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('the own one')", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = "import sys, sitecustomize; print([p for p in sys.path if 'startup' in p])"
    outcome = run_program([sys.executable, "-c", code])
    assert outcome.stdout == "the own one\n[]\n", outcome.stderr


def test_what_is_not_imported_is_not_prepared(run_program: RunProgram) -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('warploom')])"
    assert run_program([sys.executable, "-c", code]).stdout == "[]\n"


def test_a_pytorch_that_cannot_be_served_gets_the_reason(
    run_program: RunProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of PyTorch's name, which says for which CUDA it is built."""
    (tmp_path / "torch.py").write_text("class version:\n    cuda = '12.6'\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = run_program([sys.executable, "-c", "import torch; print(torch.__spec__.loader)"])
    assert "SourceFileLoader" in outcome.stdout
    assert "built for CUDA 12.6" in outcome.stderr
    assert "pip install torch" in outcome.stderr


def test_why_jax_computes_on_the_cpu_is_reported(
    run_program: RunProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JAX imports its plugin for CUDA whatever the program does; here a module of that name."""
    plugin = tmp_path / "jax_plugins" / "xla_cuda13" / "__init__.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = run_program([sys.executable, "-c", "import jax_plugins.xla_cuda13"])
    assert outcome.returncode == 0
    assert outcome.stderr.startswith("warploom: JAX computes on the CPU")
