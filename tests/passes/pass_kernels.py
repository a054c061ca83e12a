"""Loads the kernels that show what each pass does: passes/kernels/NAME.ptx is for the pass of that
name, and its comments are for FileCheck (LLVM's "FileCheck - Flexible pattern matching file
verifier")."""

from __future__ import annotations

from pathlib import Path

from filecheck.matcher import Matcher
from filecheck.options import Options

from warploom.ir.options import Pass
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

FOLDER = Path(__file__).parent / "kernels"


def kernel_for(name: Pass) -> Program:
    """Returns the kernel for a pass."""
    return build(parse((FOLDER / f"{name}.ptx").read_text("utf-8")), "k")


def check(text: str, name: Pass, prefix: str, folder: Path) -> int:
    """Matches text against the comments of a kernel that have a prefix. Returns 0 if all match;
    FileCheck reports on standard output what does not."""
    found = folder / f"{name}.ll"
    found.write_text(text, "utf-8")
    options = Options(str(FOLDER / f"{name}.ptx"), str(found), check_prefixes=[prefix])
    return Matcher.from_opts(options).run()
