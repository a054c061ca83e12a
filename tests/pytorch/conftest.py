"""Tests of PyTorch programs, which `make test-torch` runs in an environment with PyTorch: they are
written for a GPU, and run under `pytest --warploom`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parent

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


def _warploom(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    ours = ("WARPLOOM_", "LD_", "PYTHONPATH", "PYTORCH_NO_", "TRITON_", "TORCHINDUCTOR_")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept = {
        name: os.environ[name]
        for name in ("WARPLOOM_CACHE_DIR", "WARPLOOM_OPT_LEVEL")
        if name in os.environ
    }
    return subprocess.run(
        [str(Path(sys.executable).with_name("warploom")), verb, *arguments],
        env={**outer, **kept},
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def warploom_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `warploom run` with arguments: options, a program of this folder, its arguments."""
    return partial(_warploom, "run")


@pytest.fixture
def checked() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `warploom check` with arguments: options, and a program of this folder."""
    return partial(_warploom, "check")


@pytest.fixture
def debugged() -> Callable[..., list[str]]:
    """Runs a program of this folder in the debugger; gives the lines of a session."""

    def run(program: str, *commands: str) -> list[str]:
        given = [part for command in commands for part in ("-c", command)]
        return _warploom("debug", *given, program).stdout.splitlines()

    return run


@pytest.fixture
def warploom() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs any command, with arguments: options, and a program of this folder."""
    return _warploom
