"""Tests that the package's extras, alone and in pairs, resolve to wheels of one CUDA version.

Needs the package index; every pair takes pip some 15 seconds."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
WITH_CUDA = ("cuda", "numba", "nvcc", "opencl", "ptxas", "torch", "clients")
"""The extras that bring wheels of the CUDA toolkit."""

RELEASED_TOGETHER = re.compile(
    r"nvidia-(cuda-(crt|cuobjdump|cupti|nvcc|nvdisasm|nvrtc|runtime)|nvvm)$"
)
"""Wheels whose versions are that of the toolkit but for the last number. That of nvJitLink may be
newer: NVIDIA's cuda-toolkit requires none but the same major version."""


def requirements(extra: str) -> Iterator[str]:
    """Yields what an extra requires, those of the extras that it names in place of them."""
    for requirement in EXTRAS[extra]:
        named = re.fullmatch(r"warploom\[(.+)\]", requirement)
        if named is None:
            yield requirement
        else:
            for other in named[1].split(","):
                yield from requirements(other)


def resolved(extras: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Returns the versions that pip would install into a fresh environment, by name."""
    report = folder / "report.json"
    needed = sorted({one for extra in extras for one in requirements(extra)})
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    done = subprocess.run(
        [*command, "--report", report, *PROJECT["project"]["dependencies"], *needed],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    installed = json.loads(report.read_text("utf-8"))["install"]
    return {one["metadata"]["name"]: one["metadata"]["version"] for one in installed}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "extras",
    [("all",), *itertools.combinations(WITH_CUDA, 1), *itertools.combinations(WITH_CUDA, 2)],
    ids=",".join,
)
def test_extras_bring_one_cuda_version(extras: tuple[str, ...], tmp_path: Path) -> None:
    versions = resolved(extras, tmp_path)
    together = {name: v for name, v in versions.items() if RELEASED_TOGETHER.match(name)}
    assert together
    assert len({v.rsplit(".", 1)[0] for v in together.values()}) == 1, together


def test_each_extra_with_cuda_is_resolved() -> None:
    with_cuda = {
        extra
        for extra in EXTRAS
        if any(one.startswith(("cuda-", "nvidia-", "torch")) for one in requirements(extra))
    }
    assert with_cuda - {"all"} == {*WITH_CUDA}
