"""Without NVRTC, the lessons and the examples run from PTX that the package has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import precompile
import pytest

import warploom as wl
from warploom.core.errors import CompileError
from warploom.frontends import cuda_cpp
from warploom.frontends.precompiled import precompiled_ptx
from warploom.ui.grading import grade
from warploom.ui.lessons import find_lesson

SAXPY = Path(__file__).parents[2] / "examples" / "saxpy.cu"


@pytest.fixture
def no_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        return None

    monkeypatch.setattr(cuda_cpp, "_nvrtc", missing)


def test_every_lesson_and_example_is_stored() -> None:
    """After a change of one: `python tools/precompile.py`."""
    for unit in precompile.units():
        stored = precompiled_ptx(unit.text, "k.cu", unit.compute_capability, unit.options)
        assert stored is not None, unit.text


def test_nothing_else_is_stored() -> None:
    wanted = {precompile.digest_of(one.text, one.options) for one in precompile.units()}
    assert {name.split("/")[0] for name in precompile.stored()} == wanted


@pytest.mark.usefixtures("no_nvrtc")
def test_an_example_runs_and_its_lines_are_those_of_the_file() -> None:
    gpu = wl.Device("v100")
    saxpy = gpu.load(SAXPY)["saxpy"]
    x, y = gpu.to_device(np.arange(100, dtype=np.float32)), gpu.zeros(100, np.float32)
    saxpy[1, 128](100, 3.0, x, y)
    assert y.copy_to_host().tolist() == [3 * i for i in range(100)]
    with pytest.raises(wl.KernelFault, match=r"saxpy\.cu:6 "):
        saxpy[1, 128](101, 3.0, x, y)


@pytest.mark.usefixtures("no_nvrtc")
def test_the_newest_architecture_that_a_device_runs_is_chosen() -> None:
    text = SAXPY.read_text("utf-8")
    for capability, target in (((6, 1), 75), ((8, 9), 75), ((9, 0), 90), ((12, 0), 90)):
        assert f".target sm_{target}" in cuda_cpp.compile_cuda(text, "saxpy.cu", capability)


@pytest.mark.usefixtures("no_nvrtc")
def test_a_solution_is_graded() -> None:
    lesson = find_lesson("structures")
    assert lesson is not None
    assert lesson.task is not None
    assert grade(lesson, lesson.task.solution).passed


@pytest.mark.usefixtures("no_nvrtc")
@pytest.mark.parametrize(
    ("system", "remedy"), [("linux", r'pip install "warploom\[cuda\]"'), ("darwin", "nvcc -ptx")]
)
def test_an_edited_kernel_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, system: str, remedy: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    with pytest.raises(CompileError, match=remedy) as caught:
        cuda_cpp.compile_cuda(SAXPY.read_text("utf-8") + "// edited", "saxpy.cu", (9, 0))
    assert "\n" not in str(caught.value)


def test_stored_ptx_names_no_folder_of_the_computer_that_compiled_it() -> None:
    for name, ptx in precompile.stored().items():
        files = [line.split('"')[1] for line in ptx.splitlines() if line.startswith("\t.file")]
        assert all(f.startswith(("/warploom/", "/usr/local/cuda/")) for f in files), (name, files)
