"""Programs of Numba and NVRTC on every device, also those older than the compilers' targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.clients.conftest import RunProgram
from warploom.clients import session as sessions
from warploom.clients.settings import Settings
from warploom.core.errors import UnsupportedInstruction
from warploom.devices.catalog import catalog
from warploom.frontends.cuda_cpp import FIRST_WITH_FMA

OLD = ["gtx-280", "gtx-480", "gtx-980"]
"""Devices of compute capability 1.3, 2.0 and 5.2; CUDA 13's oldest target is 7.5 (CUDA Toolkit
13.0 release notes, "Deprecated architectures")."""

FMA = 1 + 2.0**-12, -1 - 2.0**-11
"""Operands x and y of x * x + y: 2^-24 where the sum is fused, 0 where the product is rounded."""


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Numba's `cuda`, for a session of a device that `choose` names."""
    pytest.importorskip("numba_cuda")
    from warploom import cuda

    def choose(device: str) -> Any:
        chosen = sessions.Session(Settings(device=device))
        monkeypatch.setattr(sessions, "_session", chosen)
        return cuda

    return choose


@pytest.mark.parametrize("device", catalog())
def test_numbas_saxpy_runs_on_every_device(device: str, numba: Any) -> None:
    cuda = numba(device)

    @cuda.jit
    def saxpy(a: Any, x: Any, y: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    x, y = np.full(1000, FMA[0], np.float32), np.full(1000, FMA[1], np.float32)
    out = np.full(1000, -1, np.float32)
    saxpy[4, 256](np.float32(FMA[0]), x, y, out)
    fused = sessions.session().device.spec.compute_capability >= FIRST_WITH_FMA
    assert (out == (2.0**-24 if fused else 0)).all()


def test_what_a_device_lacks_is_the_reason_of_a_refusal(numba: Any) -> None:
    """Doubles need compute capability 1.3 (guide, "Features and Technical Specifications")."""
    cuda = numba("8800-gtx")

    @cuda.jit
    def double(x: Any) -> None:
        x[cuda.grid(1)] *= 2

    with pytest.raises(UnsupportedInstruction, match=r"requires compute capability 1\.3\. Use a"):
        double[1, 32](np.ones(32))


@pytest.mark.parametrize("device", OLD)
def test_an_unchanged_program_of_numbas_runs(device: str, run_program: RunProgram) -> None:
    pytest.importorskip("numba_cuda")
    done = run_program("numba_saxpy.py", device=device)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("device", OLD)
def test_a_program_compiles_with_nvrtc_for_the_device(device: str, run_program: RunProgram) -> None:
    """It asks NVRTC for the architecture of the device, as cuda.core names it."""
    pytest.importorskip("cuda.core")
    done = run_program("cuda_core_saxpy.py", device=device)
    assert (done.returncode, done.stdout) == (0, "saxpy<float>\nsaxpy<double>\n"), done.stderr
