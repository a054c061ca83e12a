"""Reports to PyTorch that libraries of NVIDIA's are absent which bring machine code for a GPU.

PyTorch then uses its own code: native kernels for cuDNN's, gloo for NCCL, events for CUPTI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def leave_out_libraries() -> None:
    """Makes PyTorch do without cuDNN, fused attention, NCCL and CUPTI."""
    torch.backends.cudnn.enabled = False
    cuda = torch.backends.cuda
    for enable in (cuda.enable_cudnn_sdp, cuda.enable_flash_sdp, cuda.enable_mem_efficient_sdp):
        enable(False)
    _leave_out_nccl()
    _leave_out_cupti()
    torch._C._cuda_sleep = _sleep


def _sleep(cycles: int) -> None:
    """Returns at once, in place of launching `torch.cuda._sleep`'s kernel, which only waits and is
    machine code."""


def _leave_out_nccl() -> None:
    if torch.distributed.is_available():
        from torch.distributed import distributed_c10d

        distributed_c10d._NCCL_AVAILABLE = False
        distributed_c10d.Backend.default_device_backend_map["cuda"] = "gloo"


def _leave_out_cupti() -> None:
    """Makes the profiler time CUDA by events."""
    activities: Callable[[], set[Any]] = torch.autograd._supported_activities

    def without_cuda() -> set[Any]:
        return activities() - {torch.profiler.ProfilerActivity.CUDA}

    torch.autograd._supported_activities = without_cuda
    torch.autograd.profiler._supported_activities = without_cuda
