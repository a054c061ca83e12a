"""The checker of words finds what the style forbids, and nothing in the documentation."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "prose.py"


def checked(*files: Path) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, str(TOOL), *map(str, files)], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


def test_a_forbidden_word_is_found_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Fine.\nThe lanes meet again at the end.\n")
    code, told = checked(page)
    assert code == 1
    assert told == f"{page}:2: write 'reconverge' instead of 'meet again'\n"


def test_the_documentation_has_none() -> None:
    assert checked() == (0, "")


def test_terms_to_avoid_are_found_in_names_and_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "planted_sweep.py"
    module.write_text('def take_course(outfit: int) -> None:\n    """Relays."""\n    return None\n')
    tool = runpy.run_path(str(TOOL))
    told = tool["name_findings"](module, tool["_swaps"]("Names.yml"))
    found = {line.rpartition(" instead of ")[2] for line in told}
    assert found == {"'sweep'", "'course'", "'outfit'", "'relays'"}
