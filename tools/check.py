"""Checks a change in a minute and a half: `make check`.

python tools/check.py [--since COMMIT] [--seconds N]

Compiles the engine's helpers if they changed. Runs the linters on everything; pyright on the files
that changed and those that import them; the tests that belong to what changed (`changed_tests`),
after a quick test of each layer. What changed are the files that differ from where this branch left
COMMIT (`main`), and those that git does not know yet. Tests that have not begun when N seconds are
nearly over are skipped: their number is printed, and `make test` runs them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

from changed_tests import SMOKE, choose_tests, importers

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

LINTERS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("lint-imports",),
    ("python", "tools/prose.py"),
)

COMPILE_HELPERS = (
    "python",
    "-c",
    "from warploom.helpers.table import COMMON; COMMON.code()",
)
"""Compiles the helpers for this processor alone, if their sources changed: each worker would."""

MOST_TYPED = 120
"""How many files pyright checks at most: in 10 s or so."""

MOST_TESTED = 40
"""How many files of tests are collected at most, which takes time as well."""

ENDING = 20
"""Seconds that are kept for the tests that have begun, and for the end of pytest."""


def git(*words: str) -> str:
    """Returns what git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def changed_files(since: str) -> list[str]:
    """Returns the files that differ from where this branch left a commit, and unknown ones."""
    base = git("merge-base", "HEAD", since)
    differing = git("diff", "--name-only", "--diff-filter=d", base)
    unknown = git("ls-files", "--others", "--exclude-standard")
    return sorted({*differing.splitlines(), *unknown.splitlines()})


def texts_under(*folders: str) -> dict[str, str]:
    """Returns the text of every Python file under folders, by its path in the repository."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in found}


def typed_files(changed: Iterable[str]) -> list[str]:
    """Returns the files whose types are checked: those that changed, then those that import
    them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pyright"]
    texts = texts_under("src", "tests", "tools", "benchmarks", "validation", "examples")
    python = [file for file in changed if file in texts]
    wanted = [*python, *(path for file in python for path in importers(file, texts))]
    inside = [
        file
        for file in dict.fromkeys(wanted)
        if file.startswith(tuple(settings["include"]))
        and not file.startswith(tuple(settings["exclude"]))
    ]
    return inside[:MOST_TYPED]


def start(command: Iterable[str]) -> subprocess.Popen[bytes]:
    """Starts a program of the virtual environment."""
    name, *words = command
    return subprocess.Popen([BIN / name, *words], cwd=ROOT)


def check(since: str, seconds: float) -> bool:
    """Checks what changed since a commit in so many seconds; returns whether all is well.

    All programs but the tests, which want the helpers, start at once: on a loaded computer the
    checks of prose and of types take longer than all tests may."""
    begin = time.monotonic()
    helpers = start(COMPILE_HELPERS)
    changed = changed_files(since)
    typed = typed_files(changed)
    commands = (*LINTERS, *([("pyright", *typed)] if typed else []))
    running = [start(command) for command in commands]
    belonging = choose_tests(changed, texts_under("tests"))
    chosen = belonging[:MOST_TESTED]
    smoke = [f"tests/{test}" for test in SMOKE.values()]
    good = [helpers.wait() == 0]
    left = seconds - ENDING - (time.monotonic() - begin)
    options = ("-n", "2", "--maxschedchunk", "1", "--seconds", f"{left:.0f}")
    tests = start(("python", "-m", "pytest", *options, *smoke, *chosen))
    good += [each.wait() == 0 for each in (*running, tests)]
    print(
        f"Checked {len(changed)} changed files in {time.monotonic() - begin:.0f} s: linters, types"
        f" of {len(typed)} files, a test of each layer, {len(chosen)} of the {len(belonging)} test"
        " files that belong to them. The rest is left to `make lint` and `make test`."
    )
    return all(good)


def main() -> int:
    """Reads the command line; returns 0 if all is well, else 1."""
    parser = argparse.ArgumentParser(description="Checks a change in a minute and a half.")
    parser.add_argument("--since", default="main", help="the branch or commit to compare with")
    parser.add_argument("--seconds", type=float, default=90, help="how long it may take")
    given = parser.parse_args()
    return 0 if check(given.since, given.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
