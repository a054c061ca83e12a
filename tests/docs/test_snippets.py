"""Every shell and Python snippet of the README and the guide runs as it stands, from a fresh folder
with the repository's `examples`. The shell blocks of a page run in order, then those of Python, as
one program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "docs/tutorial.md",
    *sorted(f"docs/howto/{path.name}" for path in (ROOT / "docs" / "howto").glob("*.md")),
)

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INSTALLING = ("pip install", "python3 -m venv", "bin/activate", "make ")
"""Commands that set up an environment, which tests have already."""

KNOWN = {"sh", "python", "text", "console", "toml", "yaml", "cuda"}


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the fenced blocks of a page, with their languages."""
    return _BLOCK.findall((ROOT / page).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_every_block_names_its_language(page: str) -> None:
    assert {language for language, _ in blocks(page)} <= KNOWN


LONG = ("docs/tutorial.md", "docs/howto/teaching.md")
"""Pages of many commands, which run every night."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.nightly) if p in LONG else p for p in PAGES],
)
def test_the_snippets_of_a_page_run(page: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "WARPLOOM_DATA_DIR": str(tmp_path / "data"),
    }
    found = blocks(page)
    shell = "\n".join(text for language, text in found if language == "sh")
    kept = [line for line in shell.splitlines() if not any(i in line for i in INSTALLING)]
    run(["bash", "-euo", "pipefail", "-c", "\n".join(kept)], tmp_path, environment)
    program = "\n".join(text for language, text in found if language == "python")
    run([sys.executable, "-c", program], tmp_path, environment)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Runs a command; it must end well."""
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, f"{command[-1]}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"


def test_the_reference_of_the_command_line_is_current() -> None:
    import command_reference

    assert command_reference.TARGET.read_text() == command_reference.reference()
