"""The checker of words finds what the style forbids, and nothing in the documentation."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "prose.py"


def checked(*files: Path) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, str(TOOL), *map(str, files)], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


def test_a_forbidden_word_is_found_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Fine.\nThe lanes meet again at the end.\n", "utf-8")
    code, output = checked(page)
    assert code == 1
    assert output == f"{page}:2: write 'reconverge' instead of 'meet again'\n"


def test_the_documentation_has_none() -> None:
    assert checked() == (0, "")


def found_terms(findings: Iterable[str]) -> set[str]:
    return {line.rpartition(" instead of ")[2] for line in findings}


def test_terms_to_avoid_are_found_in_names_and_docstrings(tmp_path: Path) -> None:
    module = tmp_path / "planted_sweep.py"
    module.write_text(
        'def take_course(outfit: int) -> None:\n    """Relays."""\n    return None\n', "utf-8"
    )
    tool = runpy.run_path(str(TOOL))
    terms = tool["_swaps"]("Names.yml", "swap", "code", "engine")
    found = found_terms(tool["name_findings"](module, terms))
    assert found == {"'sweep'", "'take'", "'course'", "'outfit'", "'relays'"}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "shaping",
            "Formation",
            "sweep",
            "survey",
            "Found",
            "course",
            "copy_rounds",
            "relay_code",
        ),
        *("idle_warps", "step_aside", "leavings", "leaving", "partings", "parted", "meetings"),
        *("careful", "hurries", "remembered", "memo", "put_off", "stepped", "walks", "reaches"),
        *("listed", "is_leading", "short_way", "steady", "loosen", "outfit", "room", "desk"),
        *("module_image", "plan_words", "choosing", "alone_because", "known", "given", "asked"),
        *("tells", "told", "says", "access_row", "take_work", "kept", "apart", "ahead", "behind"),
        *("home", "place", "stand_for"),
    ],
)
def test_every_old_name_is_refused_in_the_engine(name: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"{name} = 0\n", "utf-8")
    tool = runpy.run_path(str(TOOL))
    terms = tool["_swaps"]("Names.yml", "swap", "code", "engine")
    assert list(tool["name_findings"](module, terms))


def test_a_deprecated_alias_keeps_its_name(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    warns = '    warnings.warn("use `capacity`", DeprecationWarning, stacklevel=2)\n'
    module.write_text(f"def room() -> None:\n{warns}\n\ndef rooms() -> None: ...\n", "utf-8")
    tool = runpy.run_path(str(TOOL))
    assert found_terms(tool["name_findings"](module, tool["_swaps"]("Names.yml"))) == {"'rooms'"}


def test_reaching_definitions_is_a_term_of_the_field(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("class ReachingDefinitions: ...\n\nclass Reaching: ...\n", "utf-8")
    tool = runpy.run_path(str(TOOL))
    terms = tool["_swaps"]("Names.yml", "code")
    assert list(tool["name_findings"](module, terms)) == [
        f"{module}:3: write 'access, touch, address' instead of 'reaching'"
    ]


def test_terms_are_found_in_the_prose_of_a_page_and_not_in_its_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```\na room\n```\nThe lanes have parted at `room`.\n", "utf-8")
    tool = runpy.run_path(str(TOOL))
    assert list(tool["prose_findings"](page, tool["_swaps"]("Names.yml"))) == [
        f"{page}:4: write 'divergence, diverged' instead of 'parted'"
    ]
