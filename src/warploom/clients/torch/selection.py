"""Selects the operators of ATen that the host computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

KEPT = frozenset(
    {
        "aten::empty.memory_format",
        "aten::empty_strided",
        "aten::_efficientzerotensor",
        "aten::_fused_sdp_choice",
        "aten::is_set_to",
        "aten::resize_",
        "aten::set_",
        "aten::set_.source_Storage",
        "aten::set_.source_Storage_storage_offset",
        "aten::set_.source_Tensor",
        "aten::_sparse_coo_tensor_with_dims_and_tensors",
    }
)
"""Operators whose own kernels serve: they allocate, choose, or change what a tensor knows of its
storage, and launch nothing."""

CHOOSES_BY_DEVICE = ("aten::convolution", "aten::copy_")
"""Operators of one kernel for all devices, which does something else for CUDA."""


KEYS = {"CUDA": "CPU", "SparseCUDA": "SparseCPU", "SparseCsrCUDA": "SparseCsrCPU"}
"""The dispatch keys that are served, and that of the CPU for each."""


def host_computed(key: str) -> Iterator[tuple[str, Any]]:
    """Yields the name and the overload of each operator that has a kernel for a dispatch key and
    one for the CPU, except views and what allocates. Of sparse tensors, which have memory for each
    of their parts, none is written."""
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_registrations_for_dispatch_key(key):
        if name.startswith("aten::") and name not in KEPT and computed(name, KEYS[key]):
            operator = overload(name)
            dense = key == "CUDA"
            if not _is_view(operator) and (dense or _gives_new_tensors(operator)):
                yield name, operator
    if key == "CUDA":
        for name in CHOOSES_BY_DEVICE:
            yield name, overload(name)


def overload(name: str) -> Any:
    """Returns the OpOverload of a name such as `aten::add.Tensor`."""
    plain, _, variant = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, plain), variant or "default")


def _is_view(operator: Any) -> bool:
    """Returns True where a result shares an argument's memory and nothing is written."""
    return any(
        returned.alias_info is not None and not returned.alias_info.is_write
        for returned in operator._schema.returns
    )


def _gives_new_tensors(operator: Any) -> bool:
    """Returns True where a tensor is among the arguments, none of which is written, and a tensor
    among the results."""
    schema = operator._schema
    sides = schema.arguments, schema.returns
    writes = any(one.alias_info and one.alias_info.is_write for one in schema.arguments)
    return not writes and all(any("Tensor" in str(one.type) for one in side) for side in sides)
