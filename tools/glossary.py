"""Writes docs/glossary.md from the table of terms that reports use: `python tools/glossary.py`."""

from pathlib import Path

from warploom.report.terms import glossary_page

TARGET = Path(__file__).parents[1] / "docs" / "glossary.md"

if __name__ == "__main__":
    TARGET.write_text(glossary_page(), "utf-8")
