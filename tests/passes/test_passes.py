"""Tests that each pass has its effect on LLVM IR, which is absent if the pass is left out.

kernels/NAME.ptx is a kernel for the pass of that name. Its comments describe the LLVM IR with all
passes (WITH), and without this one (WITHOUT).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pass_kernels import FOLDER, check, kernel_for

from warploom.ir.options import VARIABLE, Pass
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch

LAUNCH = Launch((1, 1, 1), (256, 1, 1), b"")


def emitted(name: Pass) -> str:
    """Returns the LLVM IR of the kernel for a pass."""
    return CompiledEngine().llvm_ir(kernel_for(name), LAUNCH, baseline=False)


@pytest.mark.parametrize("name", Pass)
def test_each_pass_changes_its_kernel(
    name: Pass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    whole = emitted(name)
    monkeypatch.setenv(VARIABLE, name)
    without = emitted(name)
    assert check(whole, name, "WITH", tmp_path) == 0
    assert check(without, name, "WITHOUT", tmp_path) == 0
    assert check(whole, name, "WITHOUT", tmp_path) != 0
    assert check(without, name, "WITH", tmp_path) != 0


def test_every_pass_has_a_kernel() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(Pass)
