"""A command imports what it needs: starting one is most of the time of a short one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from warploom.cli.commands import COMMANDS, imported


def modules_after(code: str) -> set[str]:
    """Returns the modules that a process has imported once it has run some code."""
    command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_the_program_imports_no_engine_before_a_command_is_chosen() -> None:
    loaded = modules_after("import warploom.cli.main")
    assert not loaded & {"warploom.host.device", "numpy", "llvmlite"}


def test_a_launch_imports_no_machine_code_and_no_compiler() -> None:
    loaded = modules_after("import warploom.cli.run")
    assert "warploom.host.device" in loaded
    assert not loaded & {"warploom.machinecode.listing", "warploom.lower", "numba"}


def test_a_check_imports_neither_the_page_nor_the_model_of_time() -> None:
    loaded = modules_after("import warploom.cli.check")
    assert "warploom.host.device" in loaded
    unwanted = {"starlette", "uvicorn", "asyncio", "warploom.ui.record", "warploom.timing.result"}
    assert not loaded & unwanted


def test_usual_options_are_read_without_pydantic() -> None:
    command = "app(['devices'], standalone_mode=False)"
    loaded = modules_after(f"from warploom.cli.main import app; {command}")
    assert "warploom.cli.devices" in loaded
    assert "pydantic" not in loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_imported(name: str) -> None:
    assert imported(name).name == name
