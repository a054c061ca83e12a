"""Draws the packages in the order in which they import each other, and lists them, for
docs/architecture.md.

    python tools/architecture.py

reads the layers of the first contract in pyproject.toml and the first sentences of the packages'
docstrings; writes docs/architecture.svg, and the table of docs/architecture.md between its marks.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "warploom"
PICTURE, PAGE = ROOT / "docs" / "architecture.svg", ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- packages -->", "<!-- end of packages -->"

GROUPS = {
    "what users call": ("#dbeafe", ["cli", "pytest_plugin", "cuda", "ui", "clients", "testing",
                                    "validation", "debug", "host", "report", "tuning"]),
    "what watches a launch": ("#fef3c7", ["timing", "machinecode", "sanitize", "memory_model",
                                          "observe"]),
    "what runs a launch": ("#dcfce7", ["machine"]),
    "the compiler": ("#ede9fe", ["compilation", "lower", "passes", "helpers", "ir", "abi",
                                 "analysis", "shapes", "llvm", "program"]),
    "the language": ("#fce7f3", ["frontends", "ptx", "isa"]),
    "the architecture": ("#ffedd5", ["detector", "asynchronous", "texture", "cost", "simt",
                                     "devices"]),
    "what all use": ("#f1f5f9", ["core"]),
}  # fmt: skip
"""Colors of the packages, by what they are for."""

WIDTH, HEIGHT, GAP, MARGIN, TEXT = 1080, 34, 6, 160, 110
"""Sizes of the picture, a row, the space between rows and that of the titles; where text begins."""


def layers() -> list[list[str]]:
    """Returns the names of the packages, layer by layer, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rows = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [row.split(" | ") for row in rows]


def purpose(name: str) -> str:
    """Returns the first sentence of a package's docstring, or of a module's."""
    folder = PACKAGE / name
    file = folder / "__init__.py" if folder.is_dir() else PACKAGE / f"{name}.py"
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def picture(rows: Sequence[Sequence[str]]) -> str:
    """Returns the picture, as SVG: a row for each layer."""
    return "\n".join(_picture(rows)) + "\n"


def _picture(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    height = len(rows) * (HEIGHT + GAP) + GAP
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="system-ui, sans-serif" font-size="13">'
    )
    yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    group = ""
    for number, row in enumerate(rows):
        top = GAP + number * (HEIGHT + GAP)
        title, color = next((t, c) for t, (c, names) in GROUPS.items() if row[0] in names)
        if title != group:
            yield f'<text x="8" y="{top + 22}" fill="#475569">{escape(title)}</text>'
            group = title
        width = (WIDTH - MARGIN - GAP * len(row)) / len(row)
        for place, name in enumerate(row):
            yield from _box(name, MARGIN + place * (width + GAP), top, width, color)
    yield "</svg>"


def _box(name: str, left: float, top: int, width: float, color: str) -> Iterator[str]:
    yield (
        f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{HEIGHT}" rx="5"'
        f' fill="{color}" stroke="#94a3b8"/>'
    )
    yield f'<text x="{left + 10:.0f}" y="{top + 22}" font-weight="600">{escape(name)}</text>'
    # A character of this size is 6.6 units wide, 9 where it is bold.
    start = max(TEXT, 22 + 9 * len(name))
    most = int((width - start - 8) / 6.6)
    text = purpose(name).partition(". ")[0].rstrip(".").replace("`", "")
    if most > 20:
        short = text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"
        yield f'<text x="{left + start:.0f}" y="{top + 22}" fill="#334155">{escape(short)}</text>'


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns the table of packages and subpackages, as Markdown."""
    lines = ["| package | what it does |", "| --- | --- |"]
    for name in (name for row in rows for name in row):
        lines.append(f"| `{name}` | {purpose(name)} |")
        inner = sorted(one.parent.name for one in (PACKAGE / name).glob("*/__init__.py"))
        lines += [f"| `{name}/{one}` | {purpose(f'{name}/{one}')} |" for one in inner]
    return "\n".join(lines)


def page(text: str) -> str:
    """Returns the text of the page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(layers())}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PICTURE.write_text(picture(layers()), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
