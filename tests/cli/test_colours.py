"""Colors of the commands in a terminal, and none at all where NO_COLOR is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals on this system")

ROOT = Path(__file__).parents[2]

RACE = """__global__ void total(const int *x, int *sum)
{
    *sum = *sum + x[threadIdx.x];
}
"""

ARGUMENTS = ("--block", "64", "--arg", "i32[64]=ones", "--arg", "i32[64]=zeros")

COMMANDS = {
    "check": ("check", "total.cu", *ARGUMENTS),
    "profile": ("profile", str(ROOT / "examples" / "reverse.cu"), *ARGUMENTS),
    "devices": ("devices", "h100"),
    "occupancy": ("occupancy", "total.cu", "--block", "256"),
    "error": ("devices", "nothing"),
}


def in_terminal(folder: Path, *arguments: str, **environment: str) -> str:
    """What a command writes to a terminal of 100 columns."""
    (folder / "total.cu").write_text(RACE, "utf-8")
    ours, theirs = pty.openpty()
    given = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "warploom.cli", *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**given, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    process.wait(60)
    return b"".join(parts).decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_no_color_leaves_no_sequence(name: str, tmp_path: Path) -> None:
    """Only an erased line of progress is left, which is no color."""
    printed = in_terminal(tmp_path, *COMMANDS[name], NO_COLOR="1").replace("\r\x1b[K", "")
    assert len(printed) > 20
    assert "\x1b[" not in printed


@pytest.mark.parametrize(
    ("name", "coloured"),
    [
        ("check", "\x1b[1;31m========= Error:"),
        ("check", "\x1b[1;31mERROR SUMMARY: 1 error"),
        ("profile", "\x1b[32mcounted"),
        ("error", "\x1b[1;31merror:"),
    ],
)
def test_what_matters_has_a_colour(name: str, coloured: str, tmp_path: Path) -> None:
    assert coloured in in_terminal(tmp_path, *COMMANDS[name])
