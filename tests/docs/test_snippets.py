"""Every shell and Python snippet of the README and the documentation runs as it stands, from a
fresh folder with the repository's `examples`. The shell blocks and sessions of a page run in order,
then its blocks of Python, as one program. A session (`console`) must print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from warploom.frontends.opencl import opencl_is_missing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = ("commands.md", "instructions.md", "numba_tests.md", "cuda_samples.md")
"""Pages that programs write."""

PAGES = (
    "README.md",
    *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md") if path.name not in GENERATED),
    *sorted(f"docs/howto/{path.name}" for path in (DOCS / "howto").glob("*.md")),
)

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INSTALLING = ("pip install", "python3 -m venv", "bin/activate", "make ")
"""Commands that set up an environment, which tests have already."""

KNOWN = {"sh", "python", "text", "console", "toml", "yaml", "cuda"}


def blocks(page: str) -> list[tuple[str, str]]:
    """Returns the fenced blocks of a page, with their languages."""
    return _BLOCK.findall((ROOT / page).read_text("utf-8"))


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
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "WARPLOOM_DATA_DIR": str(tmp_path / "data"),
        "PYTHONIOENCODING": "utf-8",  # pages have what a terminal shows
    }
    found = blocks(page)
    for language, text in found:
        if language == "sh":
            kept = [line for line in text.splitlines() if not any(i in line for i in INSTALLING)]
            run(["bash", "-euo", "pipefail", "-c", "\n".join(kept)], tmp_path, environment)
        elif language == "console":
            check_session(text, tmp_path, environment)
    program = "\n".join(text for language, text in found if language == "python")
    file = tmp_path / "snippets.py"  # some packages look for the source of a function
    file.write_text(program, "utf-8")
    run([sys.executable, str(file)], tmp_path, environment)


def check_session(text: str, folder: Path, environment: dict[str, str]) -> None:
    """Run the commands of a session; each must print the lines below it. Three dots stand for the
    end of a line, or of everything."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        printed = ran.stdout.replace(f"{folder}/", "").rstrip("\n").split("\n")
        if lines[-1] == "...":
            lines = lines[:-1]
            printed = printed[: len(lines)]
        assert len(printed) == len(lines), ran.stdout + ran.stderr
        for expected, line in zip(lines, printed, strict=True):
            beginning = expected.removesuffix("...")
            assert line == expected or (expected != beginning and line.startswith(beginning))


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a command, which must succeed."""
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )
    assert ran.returncode == 0, f"{command[-1]}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"


def test_the_reference_of_the_command_line_is_current() -> None:
    import command_reference

    assert command_reference.TARGET.read_text("utf-8") == command_reference.reference()
