"""Prepares an imported PyTorch for the software GPU."""

from __future__ import annotations

import os
import sys

import torch

from warploom.clients.torch.absent import leave_out_libraries

SUPPORTED = "13"
"""The major version of CUDA whose runtime has a stand-in."""

_libraries: list[object] = []
"""Registrations last as long as these."""


def install(_torch: object) -> None:
    """Sets what must be set before CUDA is used, and has the operators replaced when it is."""
    version: str | None = torch.version.cuda
    if version is None or version.partition(".")[0] != SUPPORTED:
        build = f"for CUDA {version}" if version else "without CUDA"
        print(
            f"warploom: this PyTorch package is built {build}, so device='cuda' does not "
            f"select the software GPU; install a package for CUDA {SUPPORTED} (pip install torch)",
            file=sys.stderr,
        )
        return
    leave_out_libraries()
    torch.cuda._lazy_call(prepare_device)


def prepare_device() -> None:
    """Prepares what needs the device: runs when PyTorch has initialized CUDA."""
    from warploom.clients.torch.memory_statistics import count_allocations

    if "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ:
        count_allocations()
    replace_operators()


def replace_operators() -> None:
    """Registers the functions that compute ATen's operators for CUDA tensors."""
    from warploom.clients.torch.host_operators import host_operator
    from warploom.clients.torch.layouts import arranged
    from warploom.clients.torch.nondeterminism import checked
    from warploom.clients.torch.selection import KEYS, host_computed, overload
    from warploom.clients.torch.substitutes import cuda_only

    for key in KEYS:
        library = torch.library.Library("aten", "IMPL", key)
        _libraries.append(library)
        for name, operator in host_computed(key):
            function = arranged(name, host_operator(name, operator))
            function = checked(name, operator, function)
            library.impl(name.removeprefix("aten::"), function, key)
        if key == "CUDA":
            for name, function in cuda_only():
                function = checked(name, overload(name), function)
                library.impl(name.removeprefix("aten::"), function, key)
