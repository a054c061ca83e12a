"""Tests how many cores a process counts as its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warploom.core import host_cores
from warploom.core.host_cores import usable_cores


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Gives the process eight cores, no limit of a control group, and no siblings."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(host_cores, "QUOTA", tmp_path / "cpu.max")
    old = [tmp_path / limit.name for limit in host_cores.OLD_LIMITS]
    monkeypatch.setattr(host_cores, "OLD_LIMITS", old)
    monkeypatch.delenv(host_cores.XDIST_COUNT, raising=False)
    return tmp_path / "cpu.max"


def test_cores_of_the_affinity() -> None:
    assert usable_cores() == 8


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("9 x", 8), ("", 8)],
)
def test_the_limit_of_a_control_group(eight_cores: Path, limit: str, cores: int) -> None:
    """250,000 of each 100,000 microseconds are two and a half cores, of which two are whole."""
    eight_cores.write_text(limit, "utf-8")
    assert usable_cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("350000", 3), ("1000", 1)])
def test_the_limit_of_a_control_group_of_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text(f"{quota}\n", "utf-8")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n", "utf-8")
    assert usable_cores() == cores


def test_processes_that_work_side_by_side_share_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_cores, "_processes", 1)
    host_cores.share_cores(3)
    assert usable_cores() == 2


@pytest.mark.parametrize(("processes", "cores"), [("2", 4), ("3", 2), ("20", 1), ("0", 8)])
def test_processes_of_pytest_share_the_cores(
    monkeypatch: pytest.MonkeyPatch, processes: str, cores: int
) -> None:
    monkeypatch.setenv(host_cores.XDIST_COUNT, processes)
    assert usable_cores() == cores
