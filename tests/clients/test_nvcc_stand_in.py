"""The nvcc that programs find: PTX for machine code, with NVIDIA's own behind it or without."""

from __future__ import annotations

from pathlib import Path

import pytest

from warploom.clients.nvcc import PROGRAMS, real_nvcc
from warploom.clients.nvcc_stand_in import main

KERNEL = """
#include <cuda_fp16.h>
extern "C" __global__ void scale(float *x) { x[0] *= FACTOR; }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the current one, with the stand-in alone on the PATH."""
    monkeypatch.setenv("PATH", str(PROGRAMS))
    monkeypatch.setattr("warploom.clients.nvcc.wheel_toolkit", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text(KERNEL, "utf-8")
    return tmp_path


@pytest.mark.parametrize("machine", [["-arch", "sm_80"], ["-arch=sm_80", "-code", "sm_80"]])
def test_machine_code_of_kernels_is_ptx(folder: Path, machine: list[str]) -> None:
    assert main(["--cubin", "-O3", "-D", "FACTOR=3", *machine, "kernel.cu"]) == 0
    text = (folder / "kernel.cubin").read_text("utf-8")
    assert ".target sm_80" in text
    assert ".entry scale" in text


def test_errors_are_those_of_the_compiler(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cubin", "kernel.cu"]) == 1
    output = capsys.readouterr().err
    assert "kernel.cu(3)" in output
    assert "FACTOR" in output


def test_what_only_nvcc_can_do_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel.cu", "-o", "program"]) == 1
    assert "put NVIDIA's nvcc on the PATH" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert "Warploom" in capsys.readouterr().out


def test_nvidias_own_is_asked_for_ptx(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "nvcc").write_text('#!/bin/sh\necho "$@"\nexit 3\n', "utf-8")
    (folder / "nvcc").chmod(0o755)
    path = f"{PROGRAMS}:{folder}"
    monkeypatch.setenv("PATH", path)
    assert real_nvcc(path) == str(folder / "nvcc")
    assert main(["--cubin", "-arch", "sm_80", "kernel.cu"]) == 3
    always = "-cudart shared -lineinfo"
    assert capfd.readouterr().out == f"{always} --ptx -arch sm_80 kernel.cu -o kernel.cubin\n"
    assert main(["-cudart", "shared", "-G", "-arch=sm_80", "kernel.cu", "-o", "program"]) == 3
    assert capfd.readouterr().out == "-cudart shared -G -arch=sm_80 kernel.cu -o program\n"
