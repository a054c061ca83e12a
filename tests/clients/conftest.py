"""Programs for a GPU, run unchanged in processes of their own with the software GPU in place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from warploom.clients.environment import environment_for, libraries_are_built
from warploom.clients.nvcc import completed, found_nvcc, real_nvcc
from warploom.clients.settings import Settings

PROGRAMS = Path(__file__).parent / "programs"

Outcome = subprocess.CompletedProcess[str]
RunProgram = Callable[..., Outcome]
Build = Callable[..., list[str]]


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Runs a program of `programs/` (by name) or a command; gives what it printed and its code."""
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")

    def run(program: str | Sequence[str], *arguments: str, **settings: str | int) -> Outcome:
        given = {"device": "a100", **settings}
        chosen = Settings(**given)  # pyright: ignore[reportArgumentType]
        command = (
            [sys.executable, "-W", "ignore", str(PROGRAMS / program)]
            if isinstance(program, str)
            else [*program]
        )
        return subprocess.run(
            [*command, *arguments],
            # tinygrad does not run without a folder for its cache.
            env=environment_for(chosen) | {"CACHEDB": str(tmp_path / "tinygrad.db")},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Build a program of sources in `programs/` with options of nvcc's; gives its command."""
    if not libraries_are_built():
        pytest.skip("the stand-in libraries are not built (no C compiler?)")
    if real_nvcc(os.environ.get("PATH", "")) is None:
        pytest.skip("there is no nvcc, on the PATH or from wheels")

    def built(*sources: str, options: tuple[str, ...] = ()) -> list[str]:
        target = tmp_path / "program"
        files = [str(PROGRAMS / source) for source in sources]
        command = [found_nvcc(), *completed([*options, *files, "-o", str(target)])]
        subprocess.run(command, check=True, capture_output=True)
        return [str(target)]

    return built
