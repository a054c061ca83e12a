"""`warploom examples`: a fresh installation runs the README's first command."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from warploom.cli.main import main

ROOT = Path(__file__).parents[2]


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["warploom", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_first_commands_of_the_readme_run_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"## A first kernel\n\n```sh\n(.*?)```", page, re.DOTALL)
    assert block is not None
    for line in block[1].replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "warploom"
        assert called(monkeypatch, *arguments) == 0
    assert "y: float32[1000] = [ 1.,  3.,  5.," in capsys.readouterr().out


def test_files_that_exist_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "saxpy.cu").write_text("mine", "utf-8")
    assert called(monkeypatch, "examples", str(tmp_path)) == 0
    assert (tmp_path / "saxpy.cu").read_text("utf-8") == "mine"
    assert (tmp_path / "notebooks" / "memory.ipynb").exists()
    assert called(monkeypatch, "examples", str(tmp_path)) == 0
    assert "already has all examples" in capsys.readouterr().out


@pytest.mark.parametrize(("version", "has"), [("standard", True), ("editable", False)])
def test_wheels_have_the_examples(monkeypatch: pytest.MonkeyPatch, version: str, has: bool) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["Artefacts"]
    scope = hook.initialize.__globals__
    monkeypatch.setitem(scope, "build_web", lambda: None)
    monkeypatch.setitem(scope, "build_driver", lambda: False)
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize(object(), version, data)
    assert (data["force_include"].get("examples") == "warploom/examples") is has
