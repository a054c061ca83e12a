"""Sums over the processes of a group, and averages gradients over them."""

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

distributed.init_process_group("gloo")
rank = distributed.get_rank()
x = torch.full((4,), rank + 1.0, device="cuda")
distributed.all_reduce(x)
model = DistributedDataParallel(torch.nn.Linear(4, 1, bias=False).cuda())
model(x * (rank + 1)).sum().backward()
distributed.destroy_process_group()
print(f"{x[0].item()} {model.module.weight.grad[0, 0].item()}\n", end="")
