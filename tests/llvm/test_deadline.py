"""Checks that compiling a kernel ends within its time, or with an error that has a remedy."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.llvm import disk_cache
from warploom.llvm.deadline import VARIABLE

SOURCE = 'extern "C" __global__ void k(int* a) { a[threadIdx.x] = 1; }'


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    find = disk_cache.find
    monkeypatch.setattr(disk_cache, "find", lambda k, key: None if k == "kernel" else find(k, key))


@pytest.mark.usefixtures("uncached")
def test_a_kernel_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = wl.Device()
    kernel, out = gpu.compile(SOURCE)["k"], gpu.zeros(32, np.int32)
    monkeypatch.setenv(VARIABLE, "1e-9")
    with pytest.raises(wl.CompileError, match=r"kernel k was not compiled: compiling its \d+"):
        kernel[1, 32](out)
    monkeypatch.setenv(VARIABLE, "100")
    kernel[1, 32](out)
    assert out.copy_to_host().all()


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan"])
def test_the_variable_holds_a_number_of_seconds(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = wl.Device()
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(wl.WarploomError, match="must be a positive number of seconds"):
        gpu.compile(SOURCE)["k"][1, 32](gpu.zeros(32, np.int32))
