"""Every shell and Python snippet of the README and the documentation runs as it stands, from a
fresh folder with the repository's `examples`. The shell blocks and sessions of a page run in order,
then its blocks of Python, as one program. A session (`console`) must print what the page says, and
a block of Python what the `output` below it says (tools/doc_sessions.py writes both)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from doc_sessions import BLOCK, commands, matches, prepared, python_outputs, script

from warploom.frontends.opencl_compilers import opencl_is_missing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("commands.md", "instructions.md", "numba_tests.md", "cuda_samples.md")
"""Pages that programs write."""

PAGES = (
    "README.md",
    *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md") if path.name not in GENERATED),
    *sorted(f"docs/howto/{path.name}" for path in (DOCS / "howto").glob("*.md")),
)

KNOWN = {"sh", "python", "text", "console", "toml", "yaml", "cuda", "html", "output"}


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the fenced blocks of a page, with their languages."""
    return BLOCK.findall((ROOT / page).read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_names_its_language(page: str) -> None:
    assert {language for language, _ in blocks(page)} <= KNOWN


LONG = (
    "README.md",
    "docs/tutorial.md",
    "docs/checking.md",
    "docs/howto/teaching.md",
    "docs/howto/tuning.md",
    "docs/drop-in.md",
    "docs/timing.md",
    "docs/machine_code.md",
)
"""Pages of many commands, which run every night."""

NEEDS: dict[str, Callable[[], bool]] = {
    "docs/opencl.md": lambda: not opencl_is_missing(),
    "docs/pytorch.md": lambda: find_spec("torch") is not None,
}
"""Pages whose snippets need what not every computer has."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.nightly) if p in LONG else p for p in PAGES],
)
def test_the_snippets_of_a_page_run(page: str, tmp_path: Path) -> None:
    if page in NEEDS and not NEEDS[page]():
        pytest.skip("what the page is about is not installed here")
    environment, found = prepared(tmp_path), blocks(page)
    for language, text in found:
        if language == "sh":
            run(script(text), tmp_path, environment)
        elif language == "console":
            for command in commands(text):
                printed = command.printed(tmp_path, environment)
                assert command.matches(printed), "\n".join([command.text, *printed])
    program = [text for language, text in found if language == "python"]
    outputs = python_outputs(program, tmp_path, environment)
    for number, (language, text) in enumerate(found):
        if language == "output":
            before = sum(one == "python" for one, _ in found[:number])
            printed = outputs[before - 1]
            assert matches(text.rstrip("\n").split("\n"), printed), "\n".join(printed)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a command, which must succeed."""
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )
    assert ran.returncode == 0, f"{command[-1]}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"


def test_the_reference_of_the_command_line_is_current() -> None:
    import command_reference

    assert command_reference.TARGET.read_text("utf-8") == command_reference.reference()
