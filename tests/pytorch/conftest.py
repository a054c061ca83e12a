"""Tests of PyTorch programs, which `make test-torch` runs in an environment with PyTorch: they are
written for a GPU, and run under `pytest --warploom`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def warploom_command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `warploom run` with arguments: options, a program of this folder, its arguments."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        ours = ("WARPLOOM_", "LD_", "PYTHONPATH", "PYTORCH_NO_", "TRITON_", "TORCHINDUCTOR_")
        outer = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        kept = {
            name: os.environ[name]
            for name in ("WARPLOOM_CACHE_DIR", "WARPLOOM_OPT_LEVEL")
            if name in os.environ
        }
        return subprocess.run(
            [str(Path(sys.executable).with_name("warploom")), "run", *arguments],
            env={**outer, **kept},
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
