"""Each pass of the compiler does what it is for, and nothing does it where the pass is left out.

passes/NAME.ptx is a kernel for the pass of that name. Its comments say for FileCheck (LLVM's
"FileCheck - Flexible pattern matching file verifier") what the LLVM IR has with all passes (WITH),
and without this one (WITHOUT).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options

from warploom.analysis.build import build
from warploom.codegen.passes import VARIABLE, Pass
from warploom.machine.compiled import CompiledEngine
from warploom.machine.launch import Launch
from warploom.ptx.parser import parse

FOLDER = Path(__file__).parent / "passes"
LAUNCH = Launch((1, 1, 1), (256, 1, 1), b"")


def check(text: str, name: Pass, prefix: str, folder: Path) -> int:
    """Match LLVM IR with the comments of a kernel that have a prefix; 0 where all is as they
    say. FileCheck says on standard output what is not."""
    found = folder / f"{name}.ll"
    found.write_text(text)
    options = Options(str(FOLDER / f"{name}.ptx"), str(found), check_prefixes=[prefix])
    return Matcher.from_opts(options).run()


def emitted(name: Pass) -> str:
    """Returns the LLVM IR of the kernel for a pass."""
    program = build(parse((FOLDER / f"{name}.ptx").read_text()), "k")
    return CompiledEngine().llvm_ir(program, LAUNCH, baseline=False)


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
