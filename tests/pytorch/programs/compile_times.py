"""Measures how long torch.compile takes at first, and what it made takes then."""

import time

import torch
from torch import nn


def measure(name, function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    torch.cuda.synchronize()
    print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


torch.manual_seed(0)
mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
x, y = torch.randn(16, 32, device="cuda"), torch.randn(64, 100, device="cuda")
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).cuda()
z = torch.randn(2, 10, 32, device="cuda", requires_grad=True)
compiled = torch.compile(mlp), torch.compile(layer)
reduce = torch.compile(lambda x: (x.sin() * 2 + x).softmax(-1).sum(0))
measure("MLP, first", compiled[0], x)
measure("MLP, again", compiled[0], x)
measure("reduction, first", reduce, y)
measure("reduction, again", reduce, y)


def step():
    """Trains one step."""
    compiled[1](z).sum().backward()


measure("layer with gradient, first", step)
measure("layer with gradient, again", step)
