"""What the driver API says and does, on an A100, called by cuda.bindings.

Sources: CUDA Driver API reference; CUDA C++ Programming Guide, "Compute Capabilities": of 8.0, an
SM has 2048 threads, 32 blocks and 164 KiB of shared memory, of which each block takes 1 KiB more
than it asks for; a block has at most 163 KiB. NVIDIA A100 Tensor Core GPU Architecture: 108 SMs.
"""

from __future__ import annotations

import importlib.util

import pytest

from tests.clients.conftest import RunProgram

CASES = {
    "attributes": [f"108 8 32 1024 {163 << 10} {64 << 10}", "CUDA_ERROR_ILLEGAL_ADDRESS"],
    "rows": ["True 7 7 20 21 22 23 7 7"],
    "boxes": ["6 7 10 11 18 19 22 23"],
    "kernels": [
        " ".join(["8.5"] * 8),  # 3 + 0.5 + 5
        "True 64 80 4",
        "2 32 2",
    ],
    "memory": ["2 1 2", "False True", "True 100", "1000 0", f"{[0] * 8}"],
    "streams": ["1 2 True"],
    "graph_memory": ["4 10 2 1 11", "9 9 9 9", "9 9 9 9", "True"],  # CUgraphNodeType
    "kept": ["0 gone"],
    "logs": ["0 True", "True True", "0"],  # CU_LOG_LEVEL_ERROR
    "entry_points": ["0 1", "1 None"],  # found; cudaDriverEntryPointSymbolNotFound
}


@pytest.mark.parametrize("what", CASES)
def test_calls(run_program: RunProgram, what: str) -> None:
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda.bindings is not installed")
    outcome = run_program("driver_calls.py", what)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == CASES[what]
    assert "defect" not in outcome.stderr


def test_times_of_events_are_said_to_be_the_simulators(run_program: RunProgram) -> None:
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda.bindings is not installed")
    outcome = run_program("event_times.py", report="short")
    assert outcome.stdout == "True\n", outcome.stderr
    assert "event times are simulation times" in outcome.stderr


def test_tensor_maps_and_clusters(run_program: RunProgram) -> None:
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda.bindings is not installed")
    outcome = run_program("hopper_calls.py", device="h100")
    assert outcome.returncode == 0, outcome.stderr
    refused = "CUDA_ERROR_INVALID_VALUE"
    clusters = 2 * 132 // 4  # of 2,048 threads an SM, with 132 SMs
    assert outcome.stdout.splitlines() == ["True", f"{refused} {refused}", f"{clusters} 8"]
    assert "must be from 1 to 256" in outcome.stderr
    assert "defect" not in outcome.stderr
