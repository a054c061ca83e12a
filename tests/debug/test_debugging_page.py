"""docs/debugging.md: its session says what the debugger says, and its sources are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from warploom.cli.main import app
from warploom.debug.stops import EVENTS
from warploom.debug.terminal.shell import ALIASES, COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "debugging.md").read_text("utf-8")
PROMPT = "(warploom) "


def test_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = re.search(r"```cuda\n(.*?)```", PAGE, re.DOTALL)
    session = re.search(r"```text\n\$ (warploom debug .*?)\n(.*?)```", PAGE, re.DOTALL)
    assert source is not None
    assert session is not None
    (tmp_path / "stencil.cu").write_text(source[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    lines = session[2].splitlines()
    commands = [line.removeprefix(PROMPT) for line in lines if line.startswith(PROMPT)]
    given = [part for command in commands for part in ("-c", command)]
    app([*shlex.split(session[1])[1:], "--batch", *given], standalone_mode=False)
    assert capsys.readouterr().out.splitlines() == lines


def test_the_commands_it_names_are_there() -> None:
    tables = re.findall(r"^\| (?!command|forward|---)(.*?) \|", PAGE, re.MULTILINE)
    named = {name for row in tables for name in re.findall(r"`([a-z-]+)", row)}
    assert named
    words = {word for name in (*COMMANDS, *ALIASES, *EVENTS) for word in (name, name.split()[0])}
    assert named <= words
