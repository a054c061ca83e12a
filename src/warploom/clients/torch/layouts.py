"""Gives results the memory format that an operator's CUDA kernel gives them, where the CPU's kernel
chooses another one: code that torch.compile has made asserts the strides of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._prims_common import suggest_memory_format

Function = Callable[..., Any]


def arranged(name: str, function: Function) -> Function:
    """Returns the function that computes an operator, with the memory format of its CUDA kernel."""
    return _convolution(function) if name == "aten::convolution" else function


def _convolution(function: Function) -> Function:
    """Returns a convolution whose result has channels last if its input or its weight has, and is
    contiguous otherwise. The CPU's kernel also takes a 1x1 weight, in which both formats are the
    same, for one with channels last."""

    def compute(tensor: torch.Tensor, weight: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = function(tensor, weight, *args, **kwargs)
        formats = [suggest_memory_format(one) for one in (tensor, weight)]
        chosen = next(
            (one for one in formats if one is not torch.contiguous_format),
            torch.contiguous_format,
        )
        return result.contiguous(memory_format=chosen)

    return compute


def by_rows_of_heads(result: torch.Tensor) -> torch.Tensor:
    """Returns a result of attention (batch, head, row, column) in memory in which the heads of a
    row follow one another."""
    return result.transpose(1, 2).contiguous().transpose(1, 2)
