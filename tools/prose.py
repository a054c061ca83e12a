"""Checks the words of the documentation, the lessons and the page by `styles/Warploom/Words.yml`.

python tools/prose.py [FILE ...]

The file is a style of Vale, which reads it as well. Exit status 1 if a word of it was found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
STYLE = ROOT / "styles" / "Warploom" / "Words.yml"

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


def findings(file: Path, words: dict[str, str]) -> Iterator[str]:
    """Yields where a file has one of the words, and what to write."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        for pattern, better in words.items():
            for found in re.finditer(rf"\b(?:{pattern})\b", line, re.IGNORECASE):
                where = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
                yield f"{where}:{number}: write {better!r} instead of {found[0]!r}"


def main() -> None:
    words: dict[str, str] = yaml.safe_load(STYLE.read_text())["swap"]
    named = [Path(name).absolute() for name in sys.argv[1:]]
    files = named or sorted(file for pattern in WHERE for file in ROOT.glob(pattern))
    found = [told for file in files for told in findings(file, words)]
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
