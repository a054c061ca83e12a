"""Checks the words of the documentation, the lessons and the page by `styles/Warploom/Words.yml`,
the names and docstrings of all Python code and the prose of the documentation by `Names.yml` beside
it, and the first words of docstrings of the package.

python tools/prose.py [FILE ...]

Words.yml is a style of Vale, which reads it as well. Exit status 1 if something was found.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
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

PAGES = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md", "docs/*/*/*.md")
"""The documentation whose prose is checked for terms of Names.yml: decisions, too, but for those
that others have superseded."""

ENGINE = (
    *("simt", "cost", "texture", "asynchronous", "detector", "program", "analysis", "llvm", "abi"),
    *("helpers", "shapes", "ir", "passes", "lower", "compilation", "machine", "timing"),
)
"""The packages of the engine, whose names and docstrings have none of the terms of the section
`engine` of Names.yml either."""

AROUND = ("benchmarks", "examples", "tests", "tools", "validation")
"""Folders beside the package whose names and docstrings are checked."""

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
    for node in ast.walk(_tree(file)):
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
    yield from _swap_findings(file, file.read_text("utf-8"), words)


def _swap_findings(file: Path, text: str, swaps: dict[str, str]) -> Iterator[str]:
    """Yields where the text of a file has one of the patterns, and what to write."""
    # Most texts have few of the patterns: each line is searched for these alone.
    every = {re.compile(rf"\b(?:{one})\b", re.IGNORECASE): swaps[one] for one in swaps}
    present = {pattern: every[pattern] for pattern in every if pattern.search(text)}
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, better in present.items():
            for found in pattern.finditer(line):
                yield f"{_shown(file)}:{number}: write {better!r} instead of {found[0]!r}"


def name_findings(file: Path, terms: dict[str, str]) -> Iterator[str]:
    """Yields where a name of a file, the file's own among them, or a docstring has a term that is
    to be avoided, and what to write. Deprecated aliases keep the term that they had."""
    texts = {(1, file.stem)}
    for node in _walk(_tree(file)):
        names = (getattr(node, field, None) for field in ("id", "name", "attr", "arg", "asname"))
        texts |= {(getattr(node, "lineno", 1), name) for name in names if isinstance(name, str)}
        if isinstance(node, FUNCTIONS | ast.ClassDef | ast.Module):
            texts.add((getattr(node, "lineno", 1), ast.get_docstring(node) or ""))
    # Most texts have none of the terms, which one expression finds out.
    some = re.compile(rf"\b(?:{'|'.join(terms)})\b")
    for line, text in sorted(one for one in texts if some.search(_as_words(one[1]))):
        for term, better in terms.items():
            for found in re.finditer(rf"\b(?:{term})\b", _as_words(text)):
                yield f"{_shown(file)}:{line}: write {better!r} instead of {found[0]!r}"


def prose_findings(file: Path, terms: dict[str, str]) -> Iterator[str]:
    """Yields where the prose of a page of documentation has a term that is to be avoided, and what
    to write. Code is none: neither blocks between fences nor what stands between backticks."""
    text = re.sub(r"^```.*?^```$", _blank, file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    yield from _swap_findings(file, re.sub(r"`[^`\n]+`", "", text), terms)


@lru_cache(maxsize=1)
def _tree(file: Path) -> ast.Module:
    """Returns the syntax tree of a Python file."""
    return ast.parse(file.read_text("utf-8"))


def _blank(found: re.Match[str]) -> str:
    """Returns the line breaks of a match."""
    return "\n" * found[0].count("\n")


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yields a node and its descendants, without functions that warn that they are deprecated."""
    if not (isinstance(node, FUNCTIONS) and _is_deprecated(node)):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _walk(child)


def _is_deprecated(function: FUNCTIONS) -> bool:
    """Returns whether a function warns with a DeprecationWarning."""
    return any(
        isinstance(node, ast.Call)
        and ast.unparse(node.func) == "warnings.warn"
        and any(ast.unparse(argument) == "DeprecationWarning" for argument in node.args)
        for node in ast.walk(function)
    )


def _shown(file: Path) -> Path:
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file


def _as_words(text: str) -> str:
    """Returns a text in lower case, with spaces between the words of names."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ").lower()


@cache
def _swaps(name: str, *sections: str) -> dict[str, str]:
    """Returns the patterns of sections of a style, and what to write instead; by default `swap`."""
    style: dict[str, dict[str, str]] = yaml.safe_load((STYLES / name).read_text("utf-8"))
    return {
        pattern: better
        for section in sections or ("swap",)
        for pattern, better in style[section].items()
    }


def main() -> None:
    words: dict[str, str] = _swaps("Words.yml")
    named = [Path(name).absolute() for name in sys.argv[1:]]
    files = named or sorted(file for pattern in WHERE for file in ROOT.glob(pattern))
    found = [finding for file in files for finding in findings(file, words)]
    if not named:
        package = ROOT / "src" / "warploom"
        for file in sorted(package.rglob("*.py")):
            part = file.relative_to(package).parts[0]
            if part in PACKAGES:
                found += docstring_findings(file)
            engine = part in ENGINE
            terms = _swaps("Names.yml", "swap", "code", *(["engine"] if engine else []))
            found += name_findings(file, terms)
        terms = _swaps("Names.yml", "swap", "code")
        for file in (file for name in AROUND for file in sorted((ROOT / name).rglob("*.py"))):
            found += name_findings(file, terms)
        pages = sorted(file for pattern in PAGES for file in ROOT.glob(pattern))
        pages = [file for file in pages if "\n*Superseded" not in file.read_text("utf-8")]
        terms = _swaps("Names.yml")
        found += [finding for file in pages for finding in prose_findings(file, terms)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
