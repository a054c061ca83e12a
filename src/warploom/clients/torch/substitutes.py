"""Computes operators that have a kernel for CUDA and none for the CPU: by other operators.

Fused cells of recurrent networks, attention, products with a result type of their own, histograms
of integers. Where
PyTorch has a decomposition of an operator, that serves; any other is an error which names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from warploom.clients.torch.layouts import by_rows_of_heads
from warploom.clients.torch.selection import overload

Tensor = torch.Tensor
Function = Callable[..., Any]


def cuda_only() -> Iterator[tuple[str, Function]]:
    """Yields the name of each operator without a kernel for the CPU, and a function for it."""
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        plain = name.removeprefix("aten::")
        if plain in SUBSTITUTES:
            yield name, SUBSTITUTES[plain]
        elif name.startswith("aten::") and not computed(name, "CPU") and plain not in KEPT:
            yield name, _decomposed(name)


KEPT = ("record_stream",)
"""Operators whose CUDA kernel launches nothing."""


def _decomposed(name: str) -> Function:
    """Returns a function that computes an operator by PyTorch's decomposition, if it has one."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        from torch._decomp import decomposition_table  # slow to import

        decomposition = decomposition_table.get(overload(name))
        if decomposition is None:
            raise NotImplementedError(
                f"on a GPU, machine code from NVIDIA or PyTorch computes {name}. Warploom cannot "
                "run this machine code, and PyTorch has neither a CPU kernel nor a decomposition "
                "for the operator. Use an operator that works on device='cpu'."
            )
        return decomposition(*args, **kwargs)

    return compute


# ---- recurrent cells -----------------------------------------------------------------------------


def lstm_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    cell: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns hidden state, cell state, and the activated gates for the gradient."""
    gates = _with_biases(input_gates + hidden_gates, input_bias, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    state = f * cell + i * g
    return o * state.tanh(), state, torch.cat((i, f, g, o), 1)


def lstm_cell_backward(
    grad_hidden: Tensor | None,
    grad_state: Tensor | None,
    cell: Tensor,
    state: Tensor,
    activated: Tensor,
    has_bias: bool,
) -> tuple[Tensor | None, ...]:
    """Returns gradients of the gates, of the cell state before, and of each bias."""
    if grad_hidden is None and grad_state is None:
        return None, None, None
    i, f, g, o = activated.chunk(4, 1)
    squashed = state.tanh()
    grad = torch.zeros_like(state) if grad_state is None else grad_state
    grad_o = torch.zeros_like(o)
    if grad_hidden is not None:
        grad = grad + grad_hidden * o * (1 - squashed * squashed)
        grad_o = grad_hidden * squashed * o * (1 - o)
    parts = (grad * g * i * (1 - i), grad * cell * f * (1 - f), grad * i * (1 - g * g), grad_o)
    gates = torch.cat(parts, 1)
    return gates, grad * f, gates.sum(0) if has_bias else None


def gru_cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hidden: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the hidden state, and what its gradient needs: r, z, n, the state before, and what
    r scales."""
    if input_bias is not None:
        input_gates = input_gates + input_bias
    if hidden_bias is not None:
        hidden_gates = hidden_gates + hidden_bias
    ir, iz, in_ = input_gates.chunk(3, 1)
    hr, hz, hn = hidden_gates.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (in_ + r * hn).tanh()
    return n + z * (hidden - n), torch.cat((r, z, n, hidden, hn), 1)


def gru_cell_backward(grad: Tensor, workspace: Tensor, has_bias: bool) -> tuple[Tensor | None, ...]:
    """Returns gradients of both groups of gates, of the state before, and of both biases."""
    r, z, n, hidden, hn = workspace.chunk(5, 1)
    grad_z = grad * (hidden - n) * z * (1 - z)
    grad_n = grad * (1 - z) * (1 - n * n)
    grad_r = grad_n * hn * r * (1 - r)
    inputs = torch.cat((grad_r, grad_z, grad_n), 1)
    hiddens = torch.cat((grad_r, grad_z, grad_n * r), 1)
    biases = (inputs.sum(0), hiddens.sum(0)) if has_bias else (None, None)
    return inputs, hiddens, grad * z, *biases


def _with_biases(gates: Tensor, *biases: Tensor | None) -> Tensor:
    for bias in biases:
        if bias is not None:
            gates = gates + bias
    return gates


# ---- attention -----------------------------------------------------------------------------------


def _cpu_attention(name: str) -> Function:
    """Returns the CPU's fused attention for CUDA tensors."""
    from warploom.clients.torch.host_operators import host_operator

    name = f"aten::_scaled_dot_product_flash_attention_for_cpu{name}"
    return host_operator(name, overload(name))


def _refuse_dropout(probability: float) -> None:
    if probability:
        raise NotImplementedError(
            "fused attention on the CPU does not support dropout: allow SDPBackend.MATH"
        )


def flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Returns the result and the logarithms of its sums; sequences have one length each."""
    _refuse_dropout(dropout_p)
    result, sums = _cpu_attention("")(query, key, value, 0.0, is_causal, scale=scale)
    none, state = query.new_empty(0), query.new_zeros(2, dtype=torch.int64)
    return result, sums, None, None, query.size(2), key.size(2), state, none, none


def flash_attention_backward(*args: Any, scale: float | None = None) -> tuple[Tensor, ...]:
    """Returns the gradients of query, key and value."""
    grad, query, key, value, result, sums, _, _, _, _, dropout_p, is_causal = args[:12]
    _refuse_dropout(dropout_p)
    tensors = grad, query, key, value, result, sums
    return _cpu_attention("_backward")(*tensors, 0.0, is_causal, scale=scale)


def efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor, ...]:
    """Returns the result, the logarithms of its sums, and a state of random numbers."""
    _refuse_dropout(dropout_p)
    attention = _cpu_attention("")
    result, sums = attention(query, key, value, 0.0, is_causal, attn_mask=bias, scale=scale)
    seed, offset = (query.new_zeros((), dtype=torch.int64) for _ in range(2))
    return by_rows_of_heads(result), sums, seed, offset


def efficient_attention_backward(*args: Any, scale: float | None = None) -> tuple[Any, ...]:
    """Returns the gradients of query, key and value."""
    grad, query, key, value, bias, result, sums, _, _, dropout_p, wanted = args[:11]
    is_causal = args[11] if len(args) > 11 else False
    _refuse_dropout(dropout_p)
    if wanted[3]:
        raise NotImplementedError(
            "fused attention on the CPU does not compute gradients of the mask: allow "
            "SDPBackend.MATH"
        )
    attention, tensors = _cpu_attention("_backward"), (grad, query, key, value, result, sums)
    return *attention(*tensors, 0.0, is_causal, attn_mask=bias, scale=scale), None


# ---- others --------------------------------------------------------------------------------------


def masked_scale(tensor: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Returns the tensor where the mask is 1, scaled."""
    return tensor * mask.to(tensor.dtype) * scale


def fused_dropout(tensor: Tensor, keep: float, generator: Any = None) -> tuple[Tensor, Tensor]:
    """Returns the tensor with elements kept at a probability, scaled, and the mask."""
    mask = torch.empty_like(tensor, dtype=torch.uint8).bernoulli_(keep, generator=generator)
    return masked_scale(tensor, mask, 1 / keep), mask


def histc(values: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Returns how many values are in each of the bins of equal width between `min` and `max`, or
    between the least and the greatest value if these are equal. Integers in integer arithmetic: the
    CPU has a kernel for floats alone."""
    if values.is_floating_point():
        from warploom.clients.torch.host_operators import host_operator

        return host_operator("aten::histc", overload("aten::histc"))(values, bins, min, max)
    numbers, lowest, highest = values.flatten().long(), int(min), int(max)
    if lowest == highest and numbers.numel():
        lowest, highest = int(numbers.min()), int(numbers.max())
    if lowest == highest:
        lowest, highest = lowest - 1, highest + 1
    numbers = numbers[(numbers >= lowest) & (numbers <= highest)]
    places = ((numbers - lowest) * bins).div(highest - lowest, rounding_mode="floor")
    return torch.bincount(places.clamp(max=bins - 1), minlength=bins).to(values.dtype)


def _typed(product: Function) -> Function:
    """Returns a product whose operands are turned into the type of the result before."""

    def compute(*args: Any, **kwargs: Any) -> Tensor:
        *tensors, dtype = args
        return product(*(tensor.to(dtype) for tensor in tensors), **kwargs)

    return compute


def _written(product: Function) -> Function:
    """Returns a product that is written into `out`."""

    def compute(*args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        result = product(*args, **kwargs)
        return out.resize_(result.size()).copy_(result)

    return compute


def _no(*_args: Any, **_kwargs: Any) -> bool:
    return False


SUBSTITUTES: dict[str, Function] = {
    "_scaled_dot_product_flash_attention": flash_attention,
    "_scaled_dot_product_flash_attention_backward": flash_attention_backward,
    "_scaled_dot_product_efficient_attention": efficient_attention,
    "_scaled_dot_product_efficient_attention_backward": efficient_attention_backward,
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_backward,
    "_thnn_fused_gru_cell": gru_cell,
    "_thnn_fused_gru_cell_backward": gru_cell_backward,
    "_masked_scale": masked_scale,
    "histc": histc,
    "_fused_dropout": fused_dropout,
    "_use_cudnn_ctc_loss": _no,
    "_use_cudnn_ctc_loss.Tensor": _no,
    "_use_miopen_ctc_loss": _no,
    "_use_miopen_ctc_loss.Tensor": _no,
}
"""Functions for operators by their names, without `aten::`."""

for _name in ("mm", "bmm", "addmm", "baddbmm"):
    _product = _typed(getattr(torch, _name))
    SUBSTITUTES.update(
        {f"{_name}.dtype": _product, f"{_name}.dtype_out": _written(_product)},
    )
