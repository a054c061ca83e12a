"""Tests of a kernel's costs, as CI runs them: `pytest --warploom examples/programs`."""

from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SAXPY = Path(__file__).parent.parent / "saxpy.cu"


def test_saxpy_is_coalesced(gpu):
    x, y = gpu.to_device(np.arange(1024, dtype=np.float32)), gpu.zeros(1024, np.float32)
    run = gpu.load(SAXPY)["saxpy"][4, 256](1024, np.float32(2), x, y)
    wl.testing.assert_coalesced(run)
    assert run.counters.global_load_sectors == 256  # 1024 floats of x and of y, 8 a sector


@pytest.mark.warploom(schedules=3)
def test_saxpy_under_several_orders(gpu):
    x, y = gpu.to_device(np.ones(1000, np.float32)), gpu.zeros(1000, np.float32)
    gpu.load(SAXPY)["saxpy"][4, 256](1000, np.float32(3), x, y)
    assert (y.copy_to_host() == 3).all()


def test_a_program(warploom_run):
    done = warploom_run(Path(__file__).parent / "numba_saxpy.py")
    assert done.stdout == "2 x + y: right\n", done.stderr
