"""Errors of `tools/mutation.py` change what they say, and verdicts are those of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PLANTED = """
import random, sys
sys.path[:0] = [f"{ROOT}/tools", f"{ROOT}/tests/machine"]
from mutating import rules, terms
"""


def in_a_process(code: str) -> str:
    """Returns what code prints in a process, which the errors end with."""
    return subprocess.run(
        [sys.executable, "-c", PLANTED.replace("{ROOT}", str(ROOT)).replace('f"', '"') + code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def mutation(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "mutation.py"), "--workers", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_error_in_a_term_changes_the_results_of_its_form() -> None:
    printed = in_a_process(
        """
from warploom.isa.spec import decode
from warploom.isa.terms import show
add = decode("add.u32")
before = show(add.terms[0])
edit = dict(terms._edits(add.terms[0], add))["operation"]
terms._plant(add, 0, 2, edit)
for opcode in ("add.u32", "add.u64", "sub.u32"):
    print(show(decode(opcode).terms[0]))
print(before)
"""
    )
    # The types of nodes belong to what is changed: 64 bits are another node.
    assert printed.splitlines() == ["or(a, b)", "add(a, b)", "sub(a, b)", "add(a, b)"]


def test_an_error_in_a_rule_changes_the_function_under_every_name() -> None:
    printed = in_a_process(
        """
import ast, random
from warploom.cost.segments import shrunk_bytes
print(shrunk_bytes(64, 0, 8))
tree, definition = rules._definition(shrunk_bytes)
loop = next(node for node in rules._places(definition) if ast.unparse(node) == "segment > 32")
rules._change(loop, random.Random(0))
shrunk_bytes.__code__ = rules._compiled(tree, shrunk_bytes)
print(shrunk_bytes(64, 0, 8))
"""
    )
    # Halved while it is larger than 32; with >= for > down to 16.
    assert printed.split() == ["32", "16"]


def test_verdicts() -> None:
    """Sums are tested there; what no test uses survives."""
    done = mutation("--count", "8", "--kinds", "term", "--tests", "tests/isa/test_kinds.py")
    assert done.returncode == 1
    assert "terms: 0 of 8 errors detected; 8 that no test uses" in done.stdout
