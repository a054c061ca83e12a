"""`torch.compile` gives what eager programs give; its kernels run on the software GPU."""

from __future__ import annotations

import torch
from torch import nn

from warploom.clients.session import session


def kernels_of(prefix):
    """Returns the names of the kernels that ran and begin so."""
    names = [one.kernel.name for one in session().kernels.values()]
    return [name for name in names if name.startswith(prefix)]


def test_a_multilayer_perceptron():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    x = torch.randn(16, 32, device="cuda")
    torch.testing.assert_close(torch.compile(model)(x), model(x))
    assert kernels_of("triton_poi_fused_addmm_relu")


def test_a_reduction():
    def reduce(x):
        return (x.sin() * 2 + x).softmax(-1).sum(0)

    x = torch.randn(64, 100, device="cuda")
    torch.testing.assert_close(torch.compile(reduce)(x), reduce(x))
    assert kernels_of("triton_per_fused")


def test_a_layer_of_a_transformer_and_its_gradient():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).cuda()
    x = torch.randn(2, 10, 32, device="cuda", requires_grad=True)
    found, expected = torch.compile(layer)(x), layer(x)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    [ours] = torch.autograd.grad(found.square().sum(), x)
    [theirs] = torch.autograd.grad(expected.square().sum(), x)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_dropout_of_a_compiled_function_keeps_its_share():
    """Of 100,000 elements a share of 0.75 has a deviation of 0.0014."""

    @torch.compile
    def drop(x):
        return nn.functional.dropout(x, 0.25)

    kept = drop(torch.ones(100_000, device="cuda"))
    assert abs((kept != 0).float().mean().item() - 0.75) < 5 * 0.0014


def test_results_have_the_strides_that_compiled_code_asserts():
    """Inductor gives a 1x1 convolution channels last, and has attention's rows of heads."""
    torch.manual_seed(0)
    convolve = nn.Conv2d(16, 32, 1, bias=False).cuda()
    x = torch.randn(2, 16, 8, 8, device="cuda")
    padded = torch.compile(lambda x: nn.functional.pad(convolve(x), (2, 2)))
    torch.testing.assert_close(padded(x), nn.functional.pad(convolve(x), (2, 2)))
    q = torch.randn(2, 8, 9, 32, device="cuda")
    attend = nn.functional.scaled_dot_product_attention
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        compiled = torch.compile(lambda q: attend(q, q, q) + 1)
        torch.testing.assert_close(compiled(q), attend(q, q, q) + 1)
