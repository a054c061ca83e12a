"""Random numbers of operators that the host computes.

A CUDA generator is a seed and an offset. `philox` draws uniform and normal numbers as a GPU does.
Every other operator draws from a CPU generator whose seed is made of both, and moves the offset on:
equal seeds give equal numbers, and states can be saved and put back, but the numbers are not those
of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from warploom.clients.driver.graphs.captures import capture_of

STEP = 4
"""What an operator adds to the offset; PyTorch wants multiples of 4."""

_MIXER = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def cuda_generator(generator: Any) -> Any:
    """Returns a generator of the device: its default one for None. One of the CPU is a
    RuntimeError, as on a GPU."""
    if generator is None:
        return torch.cuda.default_generators[torch.cuda.current_device()]
    if generator.device.type != "cuda":
        raise RuntimeError(
            f"Expected a 'cuda' device type for generator but found '{generator.device.type}'"
        )
    return generator


def host_generator(generator: Any) -> Any:
    """Returns the CPU generator for the next operator that draws from a CUDA generator (None: the
    default one), and moves that on."""
    seed, offset = next_draw(cuda_generator(generator), STEP)
    made = torch.Generator()
    made.manual_seed(_mixed(seed, offset))
    return made


def next_draw(generator: Any, step: int) -> tuple[int, int]:
    """Returns the seed and the offset of a CUDA generator, and moves the offset on by `step`. While
    a graph captures the current stream, the generator must not be asked, and what is drawn is
    discarded: both are 0 then."""
    if capture_of(torch.cuda.current_stream().cuda_stream) is not None:
        return 0, 0
    offset = generator.get_offset()
    generator.set_offset(offset + step)
    return generator.initial_seed(), offset


def _mixed(seed: int, offset: int) -> int:
    """Returns 64 bits of both (SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
    Generators", 2014), so that neighboring seeds do not give related numbers."""
    word = (seed + (offset // STEP + 1) * _MIXER) & _MASK
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & _MASK
    return word ^ word >> 31


def with_default_generator(call: Callable[[], Any]) -> Any:
    """Returns what `call` gives while the CPU's default generator has the state of the next draw
    of the device's, for operators that take no generator."""
    drawing = host_generator(None)
    default = torch.default_generator
    before = default.get_state()
    default.set_state(drawing.get_state())
    try:
        return call()
    finally:
        default.set_state(before)
