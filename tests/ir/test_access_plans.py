"""Checks `warploom ptx --plan` for accesses whose addresses follow from the source."""

from __future__ import annotations

from pathlib import Path

import pytest

import warploom as wl
from warploom.ir.options import DESCRIPTIONS, VARIABLE

SOURCE = """
extern "C" __global__ void rows(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void one(int *x) { x[blockIdx.x] += 1; }
extern "C" __global__ void columns(int *x) { x[32 * threadIdx.x] = 1; }
extern "C" __global__ void given(int *x, int step) { x[step * threadIdx.x] = 1; }
extern "C" __global__ void scattered(int *x, const int *at) { x[at[threadIdx.x]] = 1; }
extern "C" __global__ void plane(int *x, int pitch) { x[threadIdx.y * pitch + threadIdx.x] = 1; }
extern "C" __global__ void several(int *x) {
  int i = threadIdx.x; x[i] = 1; x[i + 64] = 2; x[i + 128] = 3; x[i + 256] = 4;
}
"""


@pytest.fixture(scope="module")
def loaded() -> wl.Module:
    return wl.Device("v100").compile(SOURCE)


def plans(loaded: wl.Module, name: str, *block: int) -> list[str]:
    return [plan for _, plan in loaded[name][1, block].access_plans()]


@pytest.mark.parametrize(
    ("name", "block", "pattern", "move"),
    [
        ("rows", (64,), "addresses 4 bytes apart in the warp", "a vector for each run"),
        ("rows", (8, 8), "addresses 4 bytes apart in each run of 8 lanes", "a vector for each run"),
        ("one", (64,), "one address in the warp", "a scalar for each run"),
        ("columns", (64,), "addresses 128 bytes apart in the warp", "a scatter"),
        (
            "plane",
            (16, 16),
            "addresses 4 bytes apart in each run of 16 lanes",
            "a vector for each run",
        ),
        ("given", (64,), "a stride measured at run time, in the warp", "vectors if the stride is"),
        (
            "given",
            (6, 6),
            "varying addresses, with each lane as a run of its own",
            "vectors if the stride is",
        ),
        (
            "plane",
            (6, 6),
            "addresses 4 bytes apart in each run of 2 lanes",
            "a gather or a scatter of",
        ),
        (
            "plane",
            (7, 6),
            "varying addresses, with each lane as a run of its own",
            "vectors if the stride is",
        ),
    ],
)
def test_patterns_follow_from_indices(
    loaded: wl.Module, name: str, block: tuple[int, ...], pattern: str, move: str
) -> None:
    found = plans(loaded, name, *block)[0]
    assert found.startswith(f"{pattern}; a hit in the range cache")
    assert f"; {move}" in found


def test_accesses_from_one_register_are_asked_for_once(loaded: wl.Module) -> None:
    found = plans(loaded, "several", 64)
    assert len(found) == 4
    assert all("guarded together with" in plan and "slow version" in plan for plan in found)


def test_passes_that_are_switched_off_leave_any_addresses(
    loaded: wl.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "groups")
    [found] = plans(loaded, "rows", 64)
    plan = "any addresses; a bounds check of every lane's address; a vector for consecutive lanes"
    assert found.startswith(plan)
    monkeypatch.setenv(VARIABLE, "uniformity")
    assert plans(loaded, "rows", 64)[0].startswith("a stride measured at run time")


def test_docs_describe_each_pass() -> None:
    page = (Path(__file__).parents[2] / "docs" / "engine.md").read_text("utf-8")
    for name, text in DESCRIPTIONS.items():
        assert f"| `{name}` | {text} |" in page
