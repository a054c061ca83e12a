"""The sessions of the documentation: commands with what they print, which tests hold to be so.

A session is a block of the language `console`. A line that begins with `$ ` is a command, which
goes on where a line ends in a backslash; what it prints follows. A block `output` has what the
block of Python before it prints; those of a page are one program. Three dots stand for anything, as
the last line for the rest of the output.

python tools/doc_sessions.py docs/tutorial.md    runs the blocks of pages in a new folder, and
                                                 writes what they print into sessions and outputs

As many lines of a command are written as it has; `...N` alone below a new command asks for the
first N, nothing for all of them. Seconds and addresses of the computer become three dots.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

INSTALLING = ("pip install", "python3 -m venv", "bin/activate", "make ")
"""Commands that set up an environment, which tests have already."""

WANTED = re.compile(r"\.\.\.(\d+)")
CHANGING = re.compile(
    r"(?<=\bin )\d+\.\d{3} s on this\b.*|(?:host, )?(?:after )?\d+\.\d{3} s of compilation.*"
    r"|(?<=0x)[0-9a-f]{9,}"
)

END = "\x1e"
"""What the program of a page prints after each block."""

LONGEST = 120
"""The seconds that a command may take."""


@dataclass(frozen=True)
class Command:
    """A command of a session, as text of a page, and the lines below it."""

    text: str
    lines: tuple[str, ...]

    def printed(self, folder: Path, environment: Mapping[str, str]) -> list[str]:
        """Runs the command; returns the lines that a reader sees."""
        ran = subprocess.run(
            ["bash", "-c", self.text],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=LONGEST,
            check=False,
        )
        text = ran.stdout.replace(f"{folder}/", "").rstrip("\n")
        return text.split("\n") if text else []

    def matches(self, printed: list[str]) -> bool:
        """Returns whether output is as the page says."""
        return matches(self.lines, printed)

    def updated(self, printed: list[str]) -> str:
        """Returns the command with as much of its output as the page has."""
        return "\n".join([f"$ {self.text}", *shortened(self.lines, printed)])


def matches(expected: Sequence[str], printed: Sequence[str]) -> bool:
    """Returns whether output is as expected, with dots for anything."""
    if expected[-1:] in (["..."], ("...",)):
        expected = expected[:-1]
        printed = printed[: len(expected)]
    return len(printed) == len(expected) and all(map(_same, expected, printed))


def _same(expected: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.split("...")))
    return re.fullmatch(pattern, printed) is not None


def shortened(lines: Sequence[str], printed: Sequence[str]) -> list[str]:
    """Returns as much of an output as a page has `lines` of an earlier one."""
    wanted = WANTED.fullmatch(lines[0]) if lines else None
    is_part = wanted is not None or lines[-1:] in (["..."], ("...",))
    count = int(wanted[1]) if wanted else len(lines) - is_part
    kept = printed[:count] if is_part else printed
    return [CHANGING.sub("...", line) for line in kept] + ["..."] * (len(kept) < len(printed))


def commands(session: str) -> Iterator[Command]:
    """Yields the commands of a session."""
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        end = next(n for n, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield Command("\n".join(lines[:end]), tuple(lines[end:]))


def prepared(folder: Path) -> dict[str, str]:
    """Fills the folder in which the blocks of a page run, and returns their environment."""
    (folder / "examples").symlink_to(ROOT / "examples")
    binaries = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "ignore",
        "WARPLOOM_DATA_DIR": str(folder / "data"),
        "PYTHONIOENCODING": "utf-8",  # pages have what a terminal shows
    }


def script(block: str) -> list[str]:
    """Returns the command that runs a block of shell, without what sets up an environment."""
    kept = [line for line in block.splitlines() if not any(i in line for i in INSTALLING)]
    return ["bash", "-euo", "pipefail", "-c", "\n".join(kept)]


def python_outputs(
    blocks: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> list[list[str]]:
    """Runs a page's blocks of Python as one program; returns what each of them prints. Raises
    AssertionError where the program fails."""
    file = folder / "snippets.py"  # some packages look for the source of a function
    file.write_text("".join(f"{block}\nprint('{END}')\n" for block in blocks), "utf-8")
    ran = subprocess.run(
        [sys.executable, str(file)],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=LONGEST,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
    parts = ran.stdout.replace(f"{folder}/", "").split(f"{END}\n")
    return [part.rstrip("\n").split("\n") if part else [] for part in parts[:-1]]


def update(page: Path) -> None:
    """Writes what commands print into the sessions of a page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        environment = prepared(folder)
        text = page.read_text("utf-8")
        page.write_text(BLOCK.sub(_written(folder, environment), text), "utf-8")
        blocks = BLOCK.findall(page.read_text("utf-8"))
        if not any(language == "output" for language, _ in blocks):
            return
        program = [text for language, text in blocks if language == "python"]
        outputs, number = python_outputs(program, folder, environment), -1

        def filled(block: re.Match[str]) -> str:
            nonlocal number
            language, text = block.groups()
            number += language == "python"
            if language != "output":
                return block[0]
            lines = text.rstrip("\n").split("\n") if text else []
            return "\n".join(["```output", *shortened(lines, outputs[number]), "```"])

        page.write_text(BLOCK.sub(filled, page.read_text("utf-8")), "utf-8")


def _written(folder: Path, environment: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    """Returns what makes a block of a page anew: runs those of shell, and fills sessions."""

    def written(block: re.Match[str]) -> str:
        language, text = block.groups()
        if language == "sh":
            subprocess.run(script(text), cwd=folder, env=environment, check=True)
        if language != "console":
            return block[0]
        made = [one.updated(one.printed(folder, environment)) for one in commands(text)]
        return "\n".join([f"```{language}", *made, "```"])

    return written


if __name__ == "__main__":
    for file in sys.argv[1:]:
        update(Path(file))
