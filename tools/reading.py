"""Draws functions and modules of the engine, for a reader who does not know the project.

python tools/reading.py SEED FOLDER

Writes to the folder `declarations.txt`: 60 functions by class, signature and docstring;
`functions.txt`: the same with their bodies; `modules.txt`: 20 modules by the first paragraph of
their docstrings. docs/testing.md ("Readers") has how these are used, and what came of it.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prose import ENGINE

PACKAGE = Path(__file__).parent.parent / "src" / "warploom"
FUNCTIONS, MODULES = 60, 20


@dataclass(frozen=True)
class Drawable:
    """A function of a module, with the docstring of its class."""

    module: str
    source: tuple[str, ...]
    node: ast.FunctionDef
    owner: ast.ClassDef | None

    def text(self, number: int, *, with_body: bool) -> str:
        """Returns the function under a numbered heading, down to the end of its docstring or of its
        body."""
        heading = [f"## {number}. {self.module}"]
        if self.owner is not None:
            about = " ".join((ast.get_docstring(self.owner) or "no docstring").split())
            heading[0] += f", class {self.owner.name}"
            heading.append(f"({about})")
        begin = min([self.node.lineno, *(each.lineno for each in self.node.decorator_list)])
        lines = self.source[begin - 1 : self._end_of_body() if with_body else self._end_of_head()]
        return "\n".join([*heading, *lines]) + "\n"

    def _end_of_body(self) -> int:
        """Returns the number of the last line of the function."""
        assert self.node.end_lineno is not None
        return self.node.end_lineno

    def _end_of_head(self) -> int:
        """Returns the number of the last line of the docstring, or of the signature without one."""
        first = self.node.body[0]
        if ast.get_docstring(self.node) is None:
            return first.lineno - 1
        assert first.end_lineno is not None
        return first.end_lineno


def engine_modules() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each module of the engine, in the order of their paths."""
    for package in sorted(ENGINE):
        for path in sorted((PACKAGE / package).rglob("*.py")):
            name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
            yield name, path.read_text("utf-8")


def functions_of(
    module: str, source: tuple[str, ...], node: ast.AST, owner: ast.ClassDef | None = None
) -> Iterator[Drawable]:
    """Yields the functions and methods of a module, but for special methods other than `__init__`,
    and functions within functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions_of(module, source, child, child)
        elif isinstance(child, ast.FunctionDef) and not _is_special(child.name):
            yield Drawable(module, source, child, owner)


def _is_special(name: str) -> bool:
    """Returns whether a method is one that Python calls, other than `__init__`."""
    return name.startswith("__") and name != "__init__"


def main() -> None:
    options = argparse.ArgumentParser(description="Draw functions and modules of the engine.")
    options.add_argument("seed", type=int)
    options.add_argument("folder", type=Path)
    given = options.parse_args()
    modules = [(name, text, ast.parse(text)) for name, text in engine_modules()]
    functions = [
        function
        for name, text, tree in modules
        for function in functions_of(name, tuple(text.splitlines()), tree)
    ]
    choose = random.Random(given.seed)
    drawn = list(enumerate(choose.sample(functions, FUNCTIONS), 1))
    given.folder.mkdir(parents=True, exist_ok=True)
    for file, with_body in (("declarations.txt", False), ("functions.txt", True)):
        texts = [function.text(number, with_body=with_body) for number, function in drawn]
        (given.folder / file).write_text("\n".join(texts), "utf-8")
    about = [
        f"## {number}. {name}\n" + (ast.get_docstring(tree) or "").partition("\n\n")[0] + "\n"
        for number, (name, _, tree) in enumerate(choose.sample(modules, MODULES), 1)
    ]
    (given.folder / "modules.txt").write_text("\n".join(about), "utf-8")


if __name__ == "__main__":
    main()
