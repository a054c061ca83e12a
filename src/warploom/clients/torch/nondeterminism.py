"""Raises PyTorch's errors for operators whose results on a GPU depend on the order of threads.

After `torch.use_deterministic_algorithms(True)`, such an operator raises a RuntimeError on a GPU if
PyTorch has no deterministic kernel for it. The host computes operators in one order, but a program
that fails on a GPU has to fail here. Which operators these are, and the names in the messages, are
those of the documentation of `torch.use_deterministic_algorithms` and of PyTorch's own tests
(`test_nondeterministic_alert_*` in `test/test_torch.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

Function = Callable[..., Any]

ALERTS = {
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bilinear2d_backward": "upsample_bilinear2d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad2d_backward": "reflection_pad2d_backward_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "nll_loss2d_forward": "nll_loss2d_forward_out_cuda_template",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "put_": "put_",
    "histc": "_histc_cuda",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
    "bincount": "_bincount_cuda",
    "median": "median CUDA with indices output",
    "nanmedian": "median CUDA with indices output",
    "_embedding_bag_backward": "embedding_bag_backward_cuda_max",
    "_embedding_bag_dense_backward": "embedding_bag_backward_cuda_max",
    "scatter_reduce": "scatter_reduce",
    "scatter_reduce_": "scatter_reduce",
}
"""The name in the message, by the operator's name without variants."""

MAXIMUM = 2
"""The `mode` of embedding bags that gives maxima."""

CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "bincount": lambda given: given.get("weights") is not None,
    "median": lambda given: "dim" in given,
    "nanmedian": lambda given: "dim" in given,
    "_embedding_bag_backward": lambda given: given["mode"] == MAXIMUM,
    "_embedding_bag_dense_backward": lambda given: given["mode"] == MAXIMUM,
    "scatter_reduce": lambda given: given["reduce"] not in ("sum", "mean"),
    "scatter_reduce_": lambda given: given["reduce"] not in ("sum", "mean"),
}
"""For which arguments, by their names, an operator has no deterministic kernel; without an entry:
for all."""


def checked(name: str, operator: Any, function: Function) -> Function:
    """Returns the function that computes an operator, preceded by the check whether PyTorch allows
    it; the function itself for an operator that needs no check."""
    plain = name.removeprefix("aten::").partition(".")[0]
    if plain not in ALERTS:
        return function
    message, applies = ALERTS[plain], CONDITIONS.get(plain)
    names = [argument.name for argument in operator._schema.arguments]

    def compute(*args: Any, **kwargs: Any) -> Any:
        if torch.are_deterministic_algorithms_enabled():
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            if applies is None or applies(given):
                _alert(message)
        return function(*args, **kwargs)

    return compute


def _alert(name: str) -> None:
    """Raises RuntimeError, or warns if the program has asked for warnings only."""
    message = (
        f"{name} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'. On a GPU, the result depends on the order of "
        "threads: set torch.use_deterministic_algorithms(True, warn_only=True) to be warned only"
    )
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(message)
    warnings.warn(message, UserWarning, stacklevel=3)
