"""Draws uniform and normal numbers as a GPU does, from the same generator in the same order.

PyTorch's kernel has threads in a grid that fills the device at most; each has its own sequence of
Philox4x32-10 and draws four numbers at a time, for elements at a stride of the grid's number of
threads. So numbers depend on the device, as on GPUs. Sources: Salmon and others, "Parallel Random
Numbers: As Easy as 1, 2, 3", 2011; cuRAND Library, "Device API Overview"; PyTorch,
ATen/native/cuda/DistributionTemplates.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from warploom.clients.driver.state import state
from warploom.clients.torch.random_state import cuda_generator, host_generator, next_draw

Words = npt.NDArray[np.uint64]

BLOCK, AT_ONCE, ROUNDS = 256, 4, 10
"""Threads of a block; numbers that a thread draws together; rounds of Philox."""

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(counter: list[Words], seed: int) -> list[Words]:
    """Returns four words of 32 bits for each counter of four such words."""
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(ROUNDS):
        left, right = MULTIPLIERS[0] * counter[0], MULTIPLIERS[1] * counter[2]
        counter = [
            right >> HALF ^ counter[1] ^ np.uint64(key[0]),
            right & LOW,
            left >> HALF ^ counter[3] ^ np.uint64(key[1]),
            left & LOW,
        ]
        key = [(word + weyl) & 0xFFFFFFFF for word, weyl in zip(key, WEYL, strict=True)]
    return counter


@dataclass(frozen=True)
class Drawing:
    """The way in which PyTorch's kernel draws numbers: so many for each of so many threads."""

    count: int
    threads: int

    @staticmethod
    def of(count: int) -> Drawing:
        """Returns the drawing of `count` numbers on the session's device."""
        spec = state.device.spec
        most = spec.sms * (spec.max_threads_per_sm // BLOCK)
        return Drawing(count, BLOCK * min(most, -(-count // BLOCK)))

    @property
    def times(self) -> int:
        """Returns how often a thread draws four numbers."""
        return -(-self.count // (self.threads * AT_ONCE))

    def words(self, seed: int, offset: int) -> list[Words]:
        """Returns the four words that each thread draws each time: arrays of (times, threads)."""
        shape = self.times, self.threads
        first = np.arange(offset // AT_ONCE, offset // AT_ONCE + self.times, dtype=np.uint64)
        steps = np.broadcast_to(first[:, None], shape)
        threads = np.broadcast_to(np.arange(self.threads, dtype=np.uint64), shape)
        return philox([steps & LOW, steps >> HALF, threads, np.zeros(shape, np.uint64)], seed)

    def ordered(self, numbers: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
        """Returns the numbers of four words in the order of the tensor's elements."""
        return np.stack(numbers, 1).reshape(-1)[: self.count]


def _uniform(words: list[Words]) -> list[npt.NDArray[np.float32]]:
    """Returns numbers in (0, 1], as curand_uniform4 does."""
    return [_scaled(word, 2.0**-32) for word in words]


def _normal(words: list[Words]) -> list[npt.NDArray[np.float32]]:
    """Returns normal numbers by Box and Muller's method, as curand_normal4 does."""
    results: list[npt.NDArray[np.float32]] = []
    for first, second in (words[:2], words[2:]):
        radius = np.sqrt(-2 * np.log(_scaled(first, 2.0**-32).astype(np.float64)))
        angle = _scaled(second, float(np.float32(2.0**-32 * 2 * np.pi))).astype(np.float64)
        results += [(radius * f(angle)).astype(np.float32) for f in (np.sin, np.cos)]
    return results


def _scaled(word: Words, unit: float) -> npt.NDArray[np.float32]:
    """Returns the middles of intervals of length `unit`, rounded once."""
    return (word.astype(np.float32).astype(np.float64) * unit + unit / 2).astype(np.float32)


def _drawn(numbers: Callable[[list[Words]], Any], count: int, generator: Any) -> Any:
    """Returns so many numbers, and moves a generator on as far as the kernel does."""
    drawing = Drawing.of(count)
    drawn = next_draw(cuda_generator(generator), AT_ONCE * drawing.times)
    return drawing.ordered(numbers(drawing.words(*drawn)))


def _is_plain(tensor: Any) -> bool:
    """Returns True for tensors of which elements and numbers have the same order."""
    return tensor.dtype == torch.float32 and tensor.is_contiguous() and tensor.numel() > 0


def fill_uniform(tensor: Any, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
    """Fills a CPU tensor with numbers in [low, high)."""
    if not _is_plain(tensor):
        return tensor.uniform_(low, high, generator=host_generator(generator))
    drawn = _drawn(_uniform, tensor.numel(), generator).astype(np.float64)
    drawn[drawn == 1] = 0
    return _filled(tensor, drawn * np.float32(np.float32(high) - np.float32(low)) + np.float32(low))


def fill_normal(
    tensor: Any, mean: float = 0.0, deviation: float = 1.0, *, generator: Any = None
) -> Any:
    """Fills a CPU tensor with normal numbers."""
    if not _is_plain(tensor):
        return tensor.normal_(mean, deviation, generator=host_generator(generator))
    drawn = _drawn(_normal, tensor.numel(), generator).astype(np.float64)
    return _filled(tensor, drawn * np.float32(deviation) + np.float32(mean))


def _filled(tensor: Any, numbers: npt.NDArray[np.float64]) -> Any:
    tensor.view(-1).numpy()[:] = numbers
    return tensor


DRAWN: dict[str, Callable[..., Any]] = {
    "aten::uniform_": fill_uniform,
    "aten::normal_": fill_normal,
}
"""Functions that take a generator of the device, for operators by their names."""
