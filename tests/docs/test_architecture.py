"""The map of the code: its picture and table are those of today, and it names files that exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "architecture.py"))
PAGE = TOOL["PAGE"].read_text("utf-8")


def test_the_picture_and_the_table_are_those_of_the_contracts() -> None:
    assert TOOL["PICTURE"].read_text("utf-8") == TOOL["picture"](TOOL["layers"]())
    assert TOOL["page"](PAGE) == PAGE, "run `python tools/architecture.py`"


def test_every_package_says_what_it_is_for() -> None:
    silent = [name for row in TOOL["layers"]() for name in row if not TOOL["purpose"](name)]
    assert not silent


def test_the_map_names_files_that_exist() -> None:
    named = [name for name in re.findall(r"`([\w/]+(?:\.\w+)?)`", PAGE) if "/" in name]
    assert len(named) > 60
    roots = ROOT, ROOT / "src" / "warploom"
    assert [n for n in named if not any((root / n).exists() for root in roots)] == []


def test_no_folder_has_more_than_thirty_modules() -> None:
    folders = {file.parent for file in (ROOT / "src").rglob("*.py")}
    assert {str(one): n for one in folders if (n := len(list(one.glob("*.py")))) > 30} == {}
