"""Triton's kernels on PyTorch's tensors give what PyTorch's own operators give."""

from __future__ import annotations

import math

import torch
import triton
import triton_kernels as kernels
from triton.tools.tensor_descriptor import TensorDescriptor


def test_softmax():
    x = torch.randn(7, 100, device="cuda")
    y = torch.empty_like(x)
    kernels.softmax[(7,)](x, y, 100, block=128)
    torch.testing.assert_close(y, torch.softmax(x, 1))


def test_matmul():
    """Dimensions that are no multiples of the tile's. TF32 has 10 bits of precision."""
    for dtype, tolerance in ((torch.float32, 1e-2), (torch.float16, 1e-3)):
        a, b = torch.randn(50, 40, device="cuda"), torch.randn(40, 70, device="cuda")
        a, b = a.to(dtype), b.to(dtype)
        c = torch.empty(50, 70, device="cuda")
        grid = (triton.cdiv(50, 32), triton.cdiv(70, 32))
        kernels.matmul[grid](a, b, c, 50, 70, 40, bm=32, bn=32, bk=16)
        torch.testing.assert_close(c, a.float() @ b.float(), rtol=tolerance, atol=5 * tolerance)


def test_layer_norm():
    x, (weight, bias) = torch.randn(5, 100, device="cuda"), torch.randn(2, 100, device="cuda")
    y = torch.empty_like(x)
    kernels.layer_norm[(5,)](x, y, weight, bias, 100, 1e-5, block=128)
    expected = torch.nn.functional.layer_norm(x, (100,), weight, bias, 1e-5)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)


def test_flash_attention():
    q, k, v = (torch.randn(2, 3, 64, 32, device="cuda", dtype=torch.float16) for _ in range(3))
    o, scale = torch.empty_like(q), 32**-0.5
    kernels.attention[(2, 6)](q, k, v, o, scale, 64, width=32, bm=32, bn=32)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(o, expected, rtol=1e-2, atol=1e-2)


def test_autotuning_takes_the_first_configuration():
    x, y = torch.randn(2, 1000, device="cuda")
    z = torch.empty_like(x)
    kernels.add[lambda meta: (triton.cdiv(1000, meta["block"]),)](x, y, z, 1000)
    assert torch.equal(z, x + y)
    assert kernels.add.best_config.kwargs == {"block": 64}


def test_autotuning_compiles_until_a_configuration_works():
    x = torch.randn(100, device="cuda")
    y = torch.empty_like(x)
    kernels.double[lambda meta: (triton.cdiv(100, meta["block"]),)](x, y, 100)
    assert torch.equal(y, 2 * x)
    assert kernels.double.best_config.kwargs == {"block": 64}
    times = kernels.double.configs_timings.items()
    assert [config.kwargs["block"] for config, [time, *_] in times if math.isfinite(time)] == [64]


def test_descriptors_made_by_kernels():
    """`make_tensor_descriptor` writes tensor maps to memory of Triton's allocator (`tensormap`,
    `cp.async.bulk.tensor`). Tiles beyond the end are cut off."""
    triton.set_allocator(
        lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8, device="cuda")
    )
    x = torch.randn(72, 100, device="cuda")
    y = torch.full((100, 72), -1.0, device="cuda")
    grid = (triton.cdiv(72, 32), triton.cdiv(100, 64))
    kernels.transpose_by_descriptors[grid](x, y, 72, 100, bm=32, bn=64)
    assert torch.equal(y, x.T)


def test_descriptors_made_on_the_host():
    """Tiles are added to a tensor by `cp.reduce.async.bulk.tensor`."""
    x = torch.arange(48 * 32, device="cuda", dtype=torch.float32).reshape(48, 32)
    y = torch.ones(32, 32, device="cuda")
    tile = [16, 32]
    source, target = (TensorDescriptor.from_tensor(one, tile) for one in (x, y))
    kernels.add_rows[(3, 1)](source, target, bm=16, bn=32)
    assert torch.equal(y, 1 + x[:32] + x[16:])
