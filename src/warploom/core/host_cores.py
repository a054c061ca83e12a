"""Counts the cores of the host that this process may use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""The limit of a Linux control group (version 2): microseconds of processor time, or `max`, and the
microseconds of a period (kernel.org, "Control Group v2", cpu.max)."""

_V1 = Path("/sys/fs/cgroup/cpu")
OLD_LIMITS = (_V1 / "cpu.cfs_quota_us", _V1 / "cpu.cfs_period_us")
"""The limits of a control group of version 1: the quota, -1 if there is none, and the period
(kernel.org, "CFS Bandwidth Control")."""

XDIST_COUNT = "PYTEST_XDIST_WORKER_COUNT"
"""Set by pytest-xdist in each of its processes, which share the cores."""


_processes = 1
"""How many processes that were started together share the cores (`share_cores`)."""


def share_cores(processes: int) -> None:
    """Lets this process use only its share of the cores: so many have been started to work side by
    side."""
    global _processes
    _processes = processes


def usable_cores() -> int:
    """Returns how many cores this process may use, at least 1: those of its affinity, no more than
    the processor time of its control group, divided by the processes of pytest-xdist, or by those
    that it was started with (`share_cores`)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processes = os.environ.get(XDIST_COUNT, "")
    share = int(processes) if processes.isdecimal() and int(processes) else 1
    limit = _quota(QUOTA) or _quota(*OLD_LIMITS)
    return max(1, min(cores or 1, limit or cores or 1) // (share * _processes))


@cache
def _quota(*files: Path) -> int:
    """Returns the whole cores of a control group's limit, at least 1; 0 if there is none. The files
    hold the microseconds of processor time, and those of a period."""
    try:
        quota, period = " ".join(path.read_text("ascii") for path in files).split()
        return 0 if quota in ("max", "-1") else max(1, int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0
