"""How long the machine in an exported page takes, in Chromium: to start, and for a lesson's launch.

    python benchmarks/page_machine.py FOLDER

FOLDER has the pages of `tools/gallery.py`. Each is opened as a file, and its kernel runs as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "ui"))

from browser import launched

from warploom.ui.lessons import lessons


def main() -> None:
    """Runs the kernel of each page, for which the machine starts."""
    folder = Path(sys.argv[1]).resolve()
    starts: list[float] = []
    runs: dict[str, float] = {}
    pages = [one.id for one in lessons() if (folder / f"{one.id}.html").exists()]
    sizes = [(folder / f"{name}.html").stat().st_size / 1e3 for name in pages]
    with launched() as browser:
        for name in pages:
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto((folder / f"{name}.html").as_uri())
            page.wait_for_selector(".tabs", state="attached")
            page.keyboard.press("Control+Enter")
            page.wait_for_selector(".took, .trouble[role=alert]", timeout=120_000)
            run, start = (
                float(text.split()[0]) for text in page.locator(".took b").all_inner_texts()
            )
            starts.append(start)
            runs[name] = run
            page.close()
    print(f"{len(runs)} pages, of {min(sizes):.0f} to {max(sizes):.0f} KB")
    print(f"start: {median(starts):.2f} s (median), {max(starts):.2f} s at most")
    slowest = max(runs, key=lambda name: runs[name])
    print(f"run: {median(runs.values()):.2f} s (median), {runs[slowest]:.2f} s at most ({slowest})")


if __name__ == "__main__":
    main()
