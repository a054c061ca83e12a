"""Runs a kernel of Triton past its tensors: 1000 elements, 4 blocks of 256."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
import triton_kernels as kernels

x = torch.ones(1000, device="cuda")
y = torch.empty_like(x)
stream, event = torch.cuda.Stream(), torch.cuda.Event()
event.record(stream)
kernels.double_unguarded[(4,)](x, y, block=256)
print("sum", y.sum().item())
