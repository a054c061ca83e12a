"""Exceptions that a signal handler raises anywhere in a launch, as that of Ctrl-C does, are raised
to the caller, and later launches run."""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void k(float *x, int n)
{ for (int i = 0; i < n; i++) x[0] = x[0] * 0.9f + 1; }
"""
EVERY = 5
"""At one instruction of so many a launch is interrupted."""


class Raised(BaseException):
    """What the handler raises."""


class Injected:
    """Raises an exception before an instruction of Python, by its number, of what runs within."""

    def __init__(self, instruction: int) -> None:
        self.left = instruction

    def __enter__(self) -> Injected:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.left -= 1
            if self.left == -1:
                raise Raised
        return self._trace


@pytest.mark.skipif(sys.gettrace() is not None, reason="coverage or a debugger traces already")
def test_an_exception_anywhere_in_a_launch_is_raised_and_leaves_the_device_usable() -> None:
    """NumPy dropped it where it compared with an enumeration; locks stayed locked, and tables of
    allocations disagreed."""
    gpu = wl.Device("h100")
    kernel, x = gpu.compile(SOURCE)["k"], np.zeros(1, np.float32)
    for _ in range(3):
        kernel[1, 1](x, 1)
    most = 1_000_000
    with Injected(most) as whole:
        kernel[1, 1](x, 1)
    for instruction in range(0, most - whole.left, EVERY):
        with pytest.raises(Raised), Injected(instruction):
            kernel[1, 1](x, 1)
        x[0] = 0
        kernel[1, 1](x, 1)
        assert x[0] == 1
    thread = threading.Thread(target=lambda: kernel[1, 1](x, 1), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
