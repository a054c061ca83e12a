"""docs/instructions.md says what the tables say."""

from __future__ import annotations

import runpy
from pathlib import Path

from warploom.isa.spec import ABSENT, FORMS

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "instruction_table.py"))


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "instructions.md").read_text("utf-8")
    assert page == TOOL["table"](), "run `python tools/instruction_table.py`"


def test_every_instruction_that_runs_is_in_the_manual() -> None:
    named = {name for names in TOOL["sections"]().values() for name in names}
    assert set(FORMS) <= named


def test_what_does_not_run_has_no_form() -> None:
    running = {spec.syntax for forms in FORMS.values() for spec in forms}
    assert not {spec.syntax for forms in ABSENT.values() for spec in forms} & running


def test_every_form_that_runs_is_executed() -> None:
    untested = [
        spec.syntax for forms in FORMS.values() for spec in forms if not TOOL["executed_by"](spec)
    ]
    assert not untested


def test_what_no_count_shows_has_a_test() -> None:
    text = (ROOT / TOOL["WHERE_UNCOUNTED"]).read_text("utf-8")
    for name in set(TOOL["UNCOUNTED"].values()):
        assert f"def {name}(" in text
