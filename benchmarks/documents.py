"""Tables that benchmarks write into the documentation, each between two markers."""

from __future__ import annotations

from pathlib import Path

PERFORMANCE = Path(__file__).parent.parent / "docs" / "performance.md"


def write(section: str, table: str, page: Path = PERFORMANCE) -> None:
    """Replace what stands between `<!-- section -->` and `<!-- end of section -->`.

    Raises ValueError where the page has no such markers.
    """
    first, last = f"<!-- {section} -->", f"<!-- end of {section} -->"
    before, found, rest = page.read_text("utf-8").partition(first)
    _, ended, after = rest.partition(last)
    if not (found and ended):
        raise ValueError(f"{page} has no place for a table: {first} ... {last}")
    page.write_text(f"{before}{first}\n```text\n{table.rstrip()}\n```\n{last}{after}", "utf-8")
