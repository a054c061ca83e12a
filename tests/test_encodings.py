"""The package, its tests and its tools read and write texts in encodings that they state, whatever
the locale is."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

AROUND = ("tests", "tools", "benchmarks", "validation", "examples")
"""The folders beside the package."""

AS_USERS_WRITE = ROOT / "tests" / "clients" / "programs"

POSITION = {"read_text": 0, "write_text": 1, "open": 2, "fdopen": 2, "TextIOWrapper": 1}
"""The place of the encoding in the positional arguments of methods and functions of files; one
place earlier for the method `open` of a path."""

BINARY_OPENERS = {"webbrowser", "tarfile", "os", "archive", "self", "zipfile", "_host"}
"""What has a method `open` that opens no text."""

PROCESSES = {"run", "Popen", "check_output"}
"""What reads the output of processes, which the package may start in any locale; the tests read
that of processes which have their own."""


def unstated(tree: ast.AST) -> list[int]:
    """Returns the lines of calls that leave an encoding to the locale."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if leaves_open(call)]


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def leaves_open(call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute)
    name = name_of(call)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if None in given or "encoding" in given:
        return False
    if name in PROCESSES:
        return any(
            isinstance(given.get(word), ast.Constant) for word in ("text", "universal_newlines")
        )
    if name not in POSITION:
        return False
    if name == "write_text" and not is_method:
        return False  # that of `core.output_files`
    position = POSITION[name]
    if name in ("open", "fdopen"):
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if name == "open" and is_method:
            if owner.partition(".")[0] in BINARY_OPENERS:
                return False
            position = 1
        mode = given.get("mode") or (call.args[position - 1 : position] or [ast.Constant("r")])[0]
        if isinstance(mode, ast.Constant) and "b" in str(mode.value):
            return False
        position += 1  # behind the mode is the size of the buffer
    return len(call.args) <= position


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("p.read_text()\np.read_text('utf-8')\np.read_text(errors='replace')", [1, 3]),
        ("p.write_text(t)\np.write_text(t, 'utf-8')\np.write_text(t, encoding='utf-8')", [1]),
        ("open(p)\nopen(p, 'rb')\nopen(p, 'w')\nopen(p, mode='wb')", [1, 3]),
        ("p.open()\np.open('rb')\np.open('x', encoding='utf-8')", [1]),
        ("run(c, text=True)\nrun(c, text=True, encoding='utf-8')\nrun(c)", [1]),
    ],
)
def test_calls_without_an_encoding_are_recognised(code: str, lines: list[int]) -> None:
    assert unstated(ast.parse(code)) == lines


def test_every_encoding_of_the_package_is_stated() -> None:
    found = [place for file in python_files("src") for place in places(file, unstated)]
    assert not found


def test_every_encoding_of_a_file_is_stated_around_the_package() -> None:
    files = [file for file in python_files(*AROUND) if AS_USERS_WRITE not in file.parents]
    found = [place for file in files for place in places(file, unstated_of_files)]
    assert not found


def unstated_of_files(tree: ast.AST) -> list[int]:
    """Returns the lines of calls that read or write a file in the encoding of the locale."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if leaves_open(call) and name_of(call) not in PROCESSES]


def python_files(*folders: str) -> list[Path]:
    return [file for folder in folders for file in (ROOT / folder).rglob("*.py")]


def places(file: Path, lines: Callable[[ast.AST], list[int]]) -> list[str]:
    """Returns the file and line of all that `lines` returns of a file."""
    found = lines(ast.parse(file.read_text("utf-8")))
    return [f"{file.relative_to(ROOT)}:{line}" for line in found]
