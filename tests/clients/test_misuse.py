"""Misuse of the driver: the error that CUDA documents, an explanation, and no crash.

Sources: CUDA Driver API reference, CUresult, and "Returns" of each function.
"""

from __future__ import annotations

import re

import pytest

from tests.clients.conftest import RunProgram

CASES = {
    "before_init": ["NOT_INITIALIZED NOT_INITIALIZED"],
    "without_context": ["INVALID_CONTEXT INVALID_DEVICE"],
    "frees": ["SUCCESS INVALID_VALUE INVALID_VALUE", "INVALID_VALUE", "SUCCESS ILLEGAL_ADDRESS"],
    "stray": [
        "SUCCESS",
        "ILLEGAL_ADDRESS ILLEGAL_ADDRESS",
        "ILLEGAL_ADDRESS",
        "SUCCESS",
        "SUCCESS SUCCESS",
    ],
    "nowhere": ["SUCCESS ILLEGAL_ADDRESS"],
    "misaligned": ["MISALIGNED_ADDRESS"],
    "trap": ["LAUNCH_FAILED"],
    "deadlock": ["LAUNCH_TIMEOUT"],
    "handles": [
        "NOT_FOUND",
        "INVALID_HANDLE",
        "INVALID_HANDLE",
        "INVALID_HANDLE",
        "INVALID_CONTEXT",
        "INVALID_HANDLE",
        "INVALID_VALUE",
        "INVALID_VALUE",
        "INVALID_PTX",
        "NO_BINARY_FOR_GPU",
    ],
    "graphs": ["SUCCESS SUCCESS", "SUCCESS ILLEGAL_ADDRESS", "INVALID_HANDLE SUCCESS"],
    "unload": ["SUCCESS INVALID_HANDLE", "INVALID_HANDLE"],
    "unload_while_it_runs": ["SUCCESS True", "SUCCESS", "{2.0} INVALID_HANDLE"],
    "library_module": ["NOT_PERMITTED SUCCESS"],
    "reset_gives_back": ["{True}"],
    "finalizers": ["{1000.0}"],
    "launch_in_a_launch": ["SUCCESS ['NOT_PERMITTED']", "SUCCESS"],
    "threads": ["{40.0}"],  # two threads, twenty launches each
    "fork": ["NOT_INITIALIZED NOT_INITIALIZED", "SUCCESS"],
}


@pytest.mark.parametrize("what", CASES)
def test_the_documented_error_and_no_crash(run_program: RunProgram, what: str) -> None:
    outcome = run_program("misuse.py", what)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [*CASES[what], "end"]
    assert "defect" not in outcome.stderr


def test_a_fault_is_explained_with_its_line(run_program: RunProgram) -> None:
    outcome = run_program("misuse.py", "stray")
    assert "Invalid __global__ write of size 4 bytes" in outcome.stderr
    assert "misuse.cu:8 in kernel no_guard, by thread (16, 0, 0)" in outcome.stderr
    assert "device memory (64 bytes" in outcome.stderr


def test_memory_ends_where_the_device_or_the_user_says(run_program: RunProgram) -> None:
    outcome = run_program("misuse.py", "out_of_memory", memory="64M")
    total = 64 << 20
    assert outcome.stdout.splitlines() == [
        f"{total} OUT_OF_MEMORY INVALID_VALUE",
        "6 OUT_OF_MEMORY",  # an eighth takes 10 MiB: it begins at 2 MiB, behind a guard
        "SUCCESS",
        "end",
    ]


@pytest.mark.parametrize(
    ("how", "read"),
    [
        ("nothing", r"by thread \(0, 0, 0\)"),
        ("again", r"by thread \(0, 0, 0\)"),  # what was there before is not the program's
        ("part", r"by thread \(0, 0, 0\)"),  # bytes 3 to 63
        ("copy", ""),
        ("fill", ""),
        ("device", ""),
    ],
)
def test_reads_of_what_nobody_wrote(run_program: RunProgram, how: str, read: str) -> None:
    """The second launch reads what the first has written."""
    outcome = run_program("unwritten.py", how, sanitize="init")
    assert outcome.stdout == "end\n"
    assert len(re.findall("Error: Uninitialized __global__", outcome.stderr)) == bool(read)
    assert re.search(read, outcome.stderr)


@pytest.mark.parametrize(
    ("how", "notes"), [("managed", 1), ("mapped", 1), ("asked", 1), ("pinned", 0), ("device", 0)]
)
def test_memory_that_the_host_shares_with_kernels(
    run_program: RunProgram, how: str, notes: int
) -> None:
    """What the host reads before it has waited is not promised (CUDA C++ Programming Guide,
    "Mapped memory", "Coherency and concurrency"), and its reads are not seen: `check` says so."""
    outcome = run_program("shared_memory_of_host.py", how, sanitize="race")
    assert outcome.stdout == "end\n", outcome.stderr
    assert outcome.stderr.count("does not check whether the host waits") == notes
