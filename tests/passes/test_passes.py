"""Each pass of the compiler does what it is for, and nothing does it where the pass is left out.

passes/NAME.ptx is a kernel for the pass of that name. Its comments say what the LLVM IR has with
all passes (WITH), and without this one (WITHOUT).
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
def test_a_pass_alone_does_what_it_is_for(
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


def test_each_kernel_is_for_a_pass() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(Pass)
