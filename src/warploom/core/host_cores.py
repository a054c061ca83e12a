"""Counts the cores of the host that this process may use."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""The limit of a Linux control group (version 2): microseconds of processor time, or `max`, and the
microseconds of a period (kernel.org, "Control Group v2", cpu.max)."""

XDIST_COUNT = "PYTEST_XDIST_WORKER_COUNT"
"""Set by pytest-xdist in each of its processes, which share the cores."""


def usable_cores() -> int:
    """Returns how many cores this process may use, at least 1: those of its affinity, no more than
    the processor time of its control group, divided by the processes of pytest-xdist."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    processes = os.environ.get(XDIST_COUNT, "")
    share = int(processes) if processes.isdecimal() and int(processes) else 1
    return max(1, min(cores or 1, _quota(QUOTA) or cores or 1) // share)


@cache
def _quota(path: Path) -> int:
    """Returns the whole cores of a control group's limit, at least 1; 0 if there is no limit."""
    try:
        quota, period = path.read_text("ascii").split()
        return 0 if quota == "max" else max(1, int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return 0
