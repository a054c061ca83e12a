"""numba.cuda.random: its generators run in kernels as they are; their states are made here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cuda.random import (
    init_xoroshiro128p_state,
    init_xoroshiro128p_states_cpu,
    xoroshiro128p_dtype,
    xoroshiro128p_jump,
    xoroshiro128p_next,
    xoroshiro128p_normal_float32,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)

from warploom.clients.numba.arrays import DeviceArray, to_device

__all__ = [
    "create_xoroshiro128p_states",
    "init_xoroshiro128p_state",
    "init_xoroshiro128p_states",
    "xoroshiro128p_dtype",
    "xoroshiro128p_jump",
    "xoroshiro128p_next",
    "xoroshiro128p_normal_float32",
    "xoroshiro128p_normal_float64",
    "xoroshiro128p_uniform_float32",
    "xoroshiro128p_uniform_float64",
]


def init_xoroshiro128p_states(
    states: DeviceArray, seed: int, subsequence_start: int = 0, stream: object = 0
) -> None:
    """Initializes the generators, each 2**64 steps after the one before."""
    host: Any = np.empty(states.shape, xoroshiro128p_dtype)
    init_xoroshiro128p_states_cpu(host, seed, subsequence_start)
    states.copy_to_device(host)


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: object = 0
) -> DeviceArray:
    """Returns the states of `n` generators on the device."""
    states = to_device(np.empty(n, xoroshiro128p_dtype))
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return states
