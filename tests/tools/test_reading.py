"""Checks what is drawn of the engine for readers."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parent.parent.parent / "tools"
SOURCE = '''class Pair:
    """Holds two numbers."""

    @property
    def sum(self) -> int:
        """Returns the sum."""
        return 7


def plain(a: int,
          b: int) -> int:
    return a + b
'''


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(TOOLS))
    return runpy.run_path(str(TOOLS / "reading.py"))


def test_a_declaration_ends_with_the_docstring(tool: dict[str, Any]) -> None:
    functions = tool["functions_of"]("m", tuple(SOURCE.splitlines()), ast.parse(SOURCE))
    method, plain = functions
    declaration = method.text(1, with_body=False)
    assert declaration.startswith("## 1. m, class Pair\n(Holds two numbers.)\n    @property\n")
    assert declaration.endswith('"""Returns the sum."""\n')
    assert method.text(1, with_body=True).endswith("        return 7\n")
    # Without a docstring it is the signature.
    assert plain.text(2, with_body=False).endswith("          b: int) -> int:\n")


def test_a_seed_draws_the_same_functions_again(
    tool: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("first", "second"):
        monkeypatch.setattr(sys, "argv", ["reading.py", "7", str(tmp_path / folder)])
        tool["main"]()
    for file, count in (("declarations.txt", 60), ("functions.txt", 60), ("modules.txt", 20)):
        first, second = (
            (tmp_path / folder / file).read_text("utf-8") for folder in ("first", "second")
        )
        assert first == second
        assert first.startswith("## 1. ")
        assert first.count("\n## ") == count - 1
