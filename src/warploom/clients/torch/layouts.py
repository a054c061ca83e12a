"""Gives results the memory format that an operator's CUDA kernel gives them, where the CPU's kernel
chooses another one: code that torch.compile has made asserts the strides of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Function = Callable[..., Any]

CONTIGUOUS = ("aten::convolution", "aten::convolution_backward")
"""Operators whose results are contiguous whatever their arguments are, since cuDNN is left out."""


def arranged(name: str, function: Function) -> Function:
    """Returns the function that computes an operator, with the memory format of its CUDA kernel."""
    if name not in CONTIGUOUS:
        return function

    def compute(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            return result.contiguous()
        return tuple(one if one is None else one.contiguous() for one in result)

    return compute


def by_rows_of_heads(result: torch.Tensor) -> torch.Tensor:
    """Returns a result of attention (batch, head, row, column) in memory in which the heads of a
    row follow one another."""
    return result.transpose(1, 2).contiguous().transpose(1, 2)
