"""CUDA tensors as CPU tensors on the same memory, and results of the CPU as CUDA tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import torch

from warploom.clients.session import session

Tensor = torch.Tensor

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)

_empty = torch.ops.aten.empty.memory_format
_empty_strided = torch.ops.aten.empty_strided.default


@lru_cache(maxsize=4096)
def _storage(address: int, size: int) -> Any:
    """Returns a CPU storage of `size` bytes at an address, which it does not own.

    Tensors of one storage get one storage, so that operators see which arguments overlap.
    """
    return torch._C._construct_storage_from_data_pointer(address, CPU, size)


@lru_cache(maxsize=4096)
def _elements(address: int, size: int, dtype: torch.dtype) -> Tensor:
    """Returns a storage as a CPU tensor of one dimension."""
    with torch.inference_mode(False):
        made = _empty([0], dtype=dtype, device=CPU)
        return made.set_(_storage(address, size), 0, (size // dtype.itemsize,), (1,))


def host_view(tensor: Tensor) -> Tensor:
    """Returns a CPU tensor on the memory of a CUDA tensor."""
    if tensor.layout is not torch.strided:
        return _sparse_like(tensor, host_view, CPU)
    storage = tensor.untyped_storage()
    _mark_written(storage.data_ptr(), storage.nbytes())
    elements = _elements(storage.data_ptr(), storage.nbytes(), tensor.dtype)
    view = elements.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        torch._C._set_conj(view, True)
    if tensor.is_neg():
        torch._C._set_neg(view, True)
    return view


def _mark_written(address: int, size: int) -> None:
    """Records for the tool init that the host may have written bytes: operators on the host read
    and write through one view."""
    memory = session().device.memory
    if memory.unwritten:
        memory.mark_written(address, size)


def device_copy(result: Tensor) -> Tensor:
    """Returns a CUDA tensor with the sizes, strides and elements of a CPU tensor."""
    if result.layout is not torch.strided:
        return _sparse_like(result, device_copy, CUDA)
    if result.is_conj() or result.is_neg():
        result = result.resolve_conj().resolve_neg()
    made = _empty_strided(result.size(), result.stride(), dtype=result.dtype, device=CUDA)
    if length := extent(result):
        ctypes.memmove(made.data_ptr(), result.data_ptr(), length * result.element_size())
        _mark_written(made.data_ptr(), length * result.element_size())
    return made


def extent(tensor: Tensor) -> int:
    """Returns the number of elements from a tensor's first to its last in memory, with both."""
    if tensor.is_contiguous():
        return tensor.numel()
    if not tensor.numel():
        return 0
    steps = zip(tensor.size(), tensor.stride(), strict=True)
    return 1 + sum((size - 1) * stride for size, stride in steps)


def _sparse_like(tensor: Tensor, part: Callable[[Tensor], Tensor], device: torch.device) -> Tensor:
    """Returns a sparse tensor on another device, of which each part is that of a sparse tensor."""
    options = {"dtype": tensor.dtype, "layout": tensor.layout, "device": device}
    if tensor.layout is torch.sparse_coo:
        parts = part(tensor._indices()), part(tensor._values())
        made = torch.ops.aten._sparse_coo_tensor_unsafe.default(*parts, tensor.size(), **options)
        return made._coalesced_(tensor.is_coalesced())
    by_row = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    outer = tensor.crow_indices() if by_row else tensor.ccol_indices()
    inner = tensor.col_indices() if by_row else tensor.row_indices()
    parts = part(outer), part(inner), part(tensor.values())
    return torch.ops.aten._sparse_compressed_tensor_unsafe.default(*parts, tensor.size(), **options)


def scratch_output(output: Tensor) -> Tensor:
    """Returns a CPU tensor like a CUDA tensor, for an operator to write into and to resize."""
    made = _empty_strided(output.size(), output.stride(), dtype=output.dtype, device=CPU)
    return made.copy_(host_view(output))


def write_output(output: Tensor, written: Tensor) -> None:
    """Copies the elements of a CPU tensor to a CUDA tensor, and its sizes where they differ."""
    if output.size() != written.size():
        output.resize_(extent(written))
        output.as_strided_(written.size(), written.stride())
    host_view(output).copy_(written)


def tensors_in(value: Any) -> list[Tensor]:
    """Returns the tensors of an argument or result, which can be a list of them."""
    if isinstance(value, (list, tuple)):
        return [tensor for one in cast("Sequence[Any]", value) for tensor in tensors_in(one)]
    return [value] if isinstance(value, torch.Tensor) else []
