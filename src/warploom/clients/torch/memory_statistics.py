"""Replaces PyTorch's statistics of device memory, which its allocator keeps only where it caches.

Without the caching allocator each tensor is an allocation of the driver, and the statistics are the
driver's counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from warploom.clients.driver.state import state

BYTES = ("allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes")
BLOCKS = ("allocation", "active", "segment")


def count_allocations() -> None:
    """Makes `torch.cuda.memory_allocated` and its companions return the driver's counts."""
    statistics: Callable[[int], dict[str, Any]] = torch._C._cuda_memoryStats

    def counted(device: int) -> dict[str, Any]:
        result = statistics(device)
        for names, total in ((BYTES, state.device_bytes), (BLOCKS, state.device_blocks)):
            for name in names:
                result[name]["all"] = asdict(total)
        return result

    torch._C._cuda_memoryStats = counted
    torch._C._cuda_resetPeakMemoryStats = _reset_peak
    torch._C._cuda_resetAccumulatedMemoryStats = _reset_sums


def _reset_peak(_device: int) -> None:
    state.device_bytes.reset_peak()
    state.device_blocks.reset_peak()


def _reset_sums(_device: int) -> None:
    state.device_bytes.reset_sums()
    state.device_blocks.reset_sums()
