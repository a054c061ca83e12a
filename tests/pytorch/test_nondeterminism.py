"""Operators whose results on a GPU depend on the order of threads, after
`torch.use_deterministic_algorithms(True)`: documentation of that function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.nn import functional


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", requires_grad=True)


def gradient(function: Callable[..., torch.Tensor], *shape: int) -> Callable[[], object]:
    return lambda: function(random(*shape)).sum().backward()


COUNTED = torch.tensor([0, 1, 1])
REFUSED = {
    "avg_pool3d_backward_cuda": gradient(lambda x: functional.avg_pool3d(x, 2), 1, 4, 4, 4),
    "adaptive_avg_pool2d_backward_cuda": gradient(
        lambda x: functional.adaptive_avg_pool2d(x, 3), 1, 7, 7
    ),
    "adaptive_avg_pool3d_backward_cuda": gradient(
        lambda x: functional.adaptive_avg_pool3d(x, 3), 1, 7, 7, 7
    ),
    "upsample_trilinear3d_backward_out_cuda": gradient(
        # `interpolate` decomposes it when algorithms have to be deterministic.
        lambda x: torch.ops.aten.upsample_trilinear3d(x, [6, 6, 6], False),
        1,
        1,
        3,
        3,
        3,
    ),
    "reflection_pad1d_backward_out_cuda": gradient(
        lambda x: functional.pad(x, (1, 1), mode="reflect"), 1, 1, 4
    ),
    "grid_sampler_2d_backward_cuda": lambda: (
        functional.grid_sample(random(1, 1, 3, 3), random(1, 3, 3, 2), align_corners=True)
        .sum()
        .backward()
    ),
    "put_": lambda: torch.zeros(3, device="cuda").put_(COUNTED.cuda(), torch.ones(3).cuda()),
    "_histc_cuda": lambda: torch.histc(torch.ones(3, device="cuda")),
    "_bincount_cuda": lambda: torch.bincount(COUNTED.cuda(), torch.ones(3).cuda()),
    "median CUDA with indices output": lambda: torch.ones(3, 3, device="cuda").median(0),
}
ALLOWED = (
    lambda: functional.avg_pool3d(random(1, 4, 4, 4), 2),
    lambda: torch.bincount(COUNTED.cuda()),
    lambda: torch.ones(3, 3, device="cuda").median(),
    lambda: torch.zeros(3).cuda().scatter_reduce(0, COUNTED.cuda(), torch.ones(3).cuda(), "sum"),
)


@pytest.mark.parametrize(("name", "run"), REFUSED.items())
def test_an_operator_without_a_deterministic_kernel_is_refused(
    name: str, run: Callable[[], object]
) -> None:
    run()
    torch.use_deterministic_algorithms(True)
    with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic impl"):
        run()
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=f"^{name} does not have a deterministic impl"):
        run()


@pytest.mark.parametrize("run", ALLOWED)
def test_other_operators_run(run: Callable[[], object]) -> None:
    torch.use_deterministic_algorithms(True)
    run()
