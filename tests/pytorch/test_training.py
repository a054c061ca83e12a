"""Models train on the software GPU as they do on the CPU, from the same numbers."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8),  # depthwise
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 5 * 5, 10),
    )


def losses_of_cnn(model, images, labels, device):
    """Returns the losses of ten steps."""
    model, images, labels = copy.deepcopy(model).to(device), images.to(device), labels.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_cnn_has_the_losses_of_the_cpu():
    torch.manual_seed(7)
    model, images = small_cnn(), torch.randn(32, 1, 14, 14)
    labels = torch.randint(0, 10, (32,))
    expected = losses_of_cnn(model, images, labels, "cpu")
    found = losses_of_cnn(model, images, labels, "cuda")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert found[-1] < found[0]


class SmallTransformer(nn.Module):
    """Embeds tokens, attends to those before, and guesses the next one."""

    def __init__(self, tokens=16, width=32, length=12):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, tokens)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.size(1), tokens.device)
        hidden = self.embed(tokens) + self.place[: tokens.size(1)]
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def train_transformer(model, tokens, device):
    """Returns the losses of eight steps in mixed precision, and the type of the logits."""
    model, tokens = copy.deepcopy(model).to(device), tokens.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, logits.dtype


def test_a_transformer_trains_in_mixed_precision():
    """bfloat16 has 8 bits of precision, and the lists of autocast differ between devices."""
    torch.manual_seed(3)
    model, tokens = SmallTransformer(), torch.randint(0, 16, (8, 12))
    expected, _ = train_transformer(model, tokens, "cpu")
    found, dtype = train_transformer(model, tokens, "cuda")
    assert dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    assert found[-1] < found[0]


def test_float16_with_a_scaler():
    """A scale of 2^16 overflows for no gradient of this model, so that it stays."""
    torch.manual_seed(1)
    model, x = nn.Linear(8, 8).cuda(), torch.randn(4, 8, device="cuda")
    before = model.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(x).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**10
    assert not torch.equal(model.weight, before)
    scaler.scale(model.weight.sum() * float("inf")).backward()
    before = model.weight.detach().clone()
    scaler.step(optimizer)  # left out: a gradient is infinite
    scaler.update()
    assert scaler.get_scale() == 2.0**9
    assert torch.equal(model.weight, before)


def test_recurrent_layers_and_their_gradients():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(2)
        layer, x = kind(4, 5, 2, bidirectional=True), torch.randn(3, 2, 4)
        results = {}
        for device in ("cpu", "cuda"):
            moved = copy.deepcopy(layer).to(device)
            given = x.to(device, copy=True).requires_grad_()
            output, _ = moved(given)
            output.square().sum().backward()
            gradients = [given.grad, *(p.grad for p in moved.parameters())]
            results[device] = [tensor.cpu() for tensor in (output.detach(), *gradients)]
        torch.testing.assert_close(results["cuda"], results["cpu"], rtol=1e-4, atol=1e-5)


def test_dropout_draws_again_in_a_checkpoint():
    """Gradients of a recomputed dropout are right only if the same elements are dropped."""
    torch.manual_seed(4)
    dropout, x = nn.Dropout(0.5), torch.ones(1000, device="cuda", requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda t: dropout(t) * t, x, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * y.detach())  # d(m x x)/dx = 2 m x, and x is 1
