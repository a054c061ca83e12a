"""Checks the words of the documentation, the lessons and the page by `styles/Warploom/Words.yml`,
the names and docstrings of the engine by `Names.yml` beside it, and the first words of docstrings.

python tools/prose.py [FILE ...]

The file is a style of Vale, which reads it as well. Exit status 1 if something was found.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
STYLES = ROOT / "styles" / "Warploom"

WHERE = (
    "*.md",
    "docs/*.md",
    "docs/howto/*.md",
    "src/warploom/ui/lessons/*.toml",
    "web/src/*.ts",
    "web/src/*.tsx",
    "web/src/views/*.tsx",
    "src/warploom/cli/*.py",
    "src/warploom/ui/*.py",
)
"""What is checked if no file is named: what users read, and the code of the page."""


PACKAGES = sorted(
    folder.name for folder in (ROOT / "src" / "warploom").iterdir() if folder.is_dir()
)
"""Packages whose docstrings are checked."""

ENGINE = (
    *("simt", "cost", "texture", "asynchronous", "detector", "program", "analysis", "llvm", "abi"),
    *("helpers", "ir", "passes", "lower", "compilation", "machine", "timing"),
)
"""Packages whose names, and the words of whose docstrings, are checked."""

QUESTIONS = frozenset(["How", "What", "When", "Where", "Whether", "Which", "Who", "Why"])
"""Words that no docstring begins with."""

NOUN_PHRASES = frozenset(
    (
        *("A", "All", "An", "As", "Both", "By", "Each", "Every", "In", "Its", "No", "Of", "One"),
        *("That", "The", "Those", "Two"),
    )
)
"""Words that no docstring of a function begins with: it begins with a verb."""

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def docstring_findings(file: Path) -> Iterator[str]:
    """Yield where a docstring of a file does not say with a verb what the thing does. Formulas, by
    which instructions are defined (`@op`), are none."""
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module):
            continue
        first = (ast.get_docstring(node) or ".").split()[0]
        barred = QUESTIONS
        if isinstance(node, FUNCTIONS) and not any(map(_defines, node.decorator_list)):
            barred = QUESTIONS | NOUN_PHRASES
        if first in barred:
            line = getattr(node, "lineno", 1)
            yield f"{file.relative_to(ROOT)}:{line}: begin the docstring with a verb, not {first!r}"


def _defines(decorator: ast.expr) -> bool:
    """Return whether a decorator defines an instruction."""
    return isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "op"


def findings(file: Path, words: dict[str, str]) -> Iterator[str]:
    """Yield where a file has one of the words, and what to write."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        for pattern, better in words.items():
            for found in re.finditer(rf"\b(?:{pattern})\b", line, re.IGNORECASE):
                yield f"{_shown(file)}:{number}: write {better!r} instead of {found[0]!r}"


def name_findings(file: Path, terms: dict[str, str]) -> Iterator[str]:
    """Yields where a name of a file, the file's own among them, or a docstring has a term that is
    to be avoided, and what to write."""
    tree = ast.parse(file.read_text())
    texts = {(1, file.stem)}
    for node in ast.walk(tree):
        names = (getattr(node, field, None) for field in ("id", "name", "attr", "arg", "asname"))
        texts |= {(getattr(node, "lineno", 1), name) for name in names if isinstance(name, str)}
        if isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module):
            texts.add((getattr(node, "lineno", 1), ast.get_docstring(node) or ""))
    for line, text in sorted(texts):
        for term, better in terms.items():
            for found in re.finditer(rf"\b(?:{term})\b", _as_words(text)):
                yield f"{_shown(file)}:{line}: write {better!r} instead of {found[0]!r}"


def _shown(file: Path) -> Path:
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file


def _as_words(text: str) -> str:
    """Returns a text in lower case, with the words of names parted by spaces."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ").lower()


def _swaps(name: str) -> dict[str, str]:
    found: dict[str, str] = yaml.safe_load((STYLES / name).read_text())["swap"]
    return found


def main() -> None:
    words: dict[str, str] = _swaps("Words.yml")
    named = [Path(name).absolute() for name in sys.argv[1:]]
    files = named or sorted(file for pattern in WHERE for file in ROOT.glob(pattern))
    found = [told for file in files for told in findings(file, words)]
    if not named:
        sources = (ROOT / "src" / "warploom" / name for name in PACKAGES)
        modules = sorted(file for folder in sources for file in folder.rglob("*.py"))
        found += [told for file in modules for told in docstring_findings(file)]
        terms = _swaps("Names.yml")
        engine = (ROOT / "src" / "warploom" / name for name in ENGINE)
        names = sorted(file for folder in engine for file in folder.rglob("*.py"))
        found += [told for file in names for told in name_findings(file, terms)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
