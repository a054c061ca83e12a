"""The solution of each task computes what the task asks for, by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from warploom.ui.grading import grade, task_request
from warploom.ui.lessons import find_lesson, lessons
from warploom.ui.record import engine_of, prepare_launch

Array = npt.NDArray[Any]
Arrays = dict[str, Array]


def loop(values: Array, factor: Array, summand: Array, count: int = 8) -> Array:
    """Returns value * factor + summand, so many times, in 32 bits."""
    value = values.astype(np.int64)
    for _ in range(count):
        value = (value * factor + summand) & 0xFFFFFFFF
    return value.astype(np.uint32).view(np.int32)


def laps(count: int) -> Array:
    """Returns the sums of the lesson `lockstep`: 3 * sum + lane, lane % 4 times."""
    sums = np.zeros(count, np.int32)
    for lane in range(count):
        for _ in range(lane % 4):
            sums[lane] = 3 * sums[lane] + lane
    return sums


def cases() -> Array:
    lanes = np.arange(32, dtype=np.int64)
    value = lanes
    for i in range(8):
        value = (value * (2 * lanes + 3) + i) & 0xFFFFFFFF
    return value.astype(np.uint32).view(np.int32)


def masked() -> Array:
    value = np.arange(64, dtype=np.int64)
    for i in range(16):
        value[:12] = 3 * value[:12] + i
    return (value & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def sides(count: int) -> Array:
    n = np.arange(count)
    return loop(n, np.where(n % 2, 5, 3), np.where(n % 2, 7, 1))


def rotated(given: Array) -> Array:
    return np.concatenate([np.roll(given[:48], -1), given[48:]])


def mixed(x: Array) -> Array:
    sums = np.zeros(256, np.float64)
    for k in range(51, -1, -1):
        sums = sums * 0.5 + x[k : k + 256]
    return sums


PI = [
    3,
    1,
    4,
    1,
    5,
    9,
    2,
    6,
    5,
    3,
    5,
    8,
    9,
    7,
    9,
    3,
    2,
    3,
    8,
    4,
    6,
    2,
    6,
    4,
    3,
    3,
    8,
    3,
    2,
    7,
    9,
    5,
]

EXPECTED: dict[str, Callable[[Arrays], Arrays]] = {
    "saxpy": lambda a: {"y": 2 * a["x"] + a["y"]},
    "lockstep": lambda a: {"out": laps(32)},
    "branch": lambda a: {"out": sides(32)},
    "switch": lambda a: {"out": cases()},
    "between-warps": lambda a: {"out": sides(128)},
    "simd": lambda a: {"simd": masked()},
    "layout": lambda a: {"out": 2 * a["data"]},
    "switching": lambda a: {"sum": np.array([2047 * 2048 // 2])},
    "smt": lambda a: {"out": 2 * a["data"] + 1},
    "poor-fit": lambda a: {"out": a["data"].reshape(8, 32).sum(axis=0)},
    "coalescing": lambda a: {"out": 2 * a["data"]},
    "structures": lambda a: {"out": a["points"].sum(axis=1)},
    "caches": lambda a: {"rows": a["matrix"].sum(axis=1)},
    "constants": lambda a: {"out": np.array(PI)[np.arange(32) ^ 5]},
    "banks": lambda a: {"out": a["in"].reshape(32, 32).T},
    "reduction": lambda a: {"out": np.array([127 * 128 // 2])},
    "tiling": lambda a: {"c": a["a"].astype(np.float64) @ a["b"]},
    "histogram": lambda a: {"bins": np.bincount(a["data"] & 3, minlength=4)},
    "barrier": lambda a: {"out": rotated(a["in"])},
    "race": lambda a: {"total": np.array([32])},
    "exchange": lambda a: {"out": a["in"][::-1]},
    "lock": lambda a: {"total": np.array([4]), "lock": np.array([0])},
    "lock-warps": lambda a: {"total": np.array([64]), "lock": np.array([0])},
    "warp-synchronous": lambda a: {"out": np.array([32])},
    "shuffle": lambda a: {"out": np.full(32, 31 * 32 // 2)},
    "compaction": lambda a: {
        "count": np.array([8]),
        "out": np.concatenate([np.arange(0, 32, 4), np.zeros(24)]),
    },
    "occupancy": lambda a: {"y": mixed(a["x"])},
    "latency": lambda a: {"y": a["x"].reshape(8, 32).sum(axis=0)},
    "async-copy": lambda a: {"out": a["in"][::-1]},
    "tensor-cores": lambda a: {"c": a["a"].astype(np.float64) @ a["b"].astype(np.float64)},
    "streams": lambda a: {"out": 2 * a["in"] + 1},
    "torch-compile": lambda a: {"out": np.maximum(a["x"] + a["bias"], 0) / 2},
    "opencl": lambda a: {"to": a["x"].reshape(2, 64).sum(axis=1)},
}


KERNELS = [one.id for one in lessons() if one.task and not one.task.design]


@pytest.mark.parametrize("name", KERNELS)
def test_a_solution_is_right(name: str) -> None:
    lesson = find_lesson(name)
    assert lesson is not None
    assert lesson.task is not None
    request = task_request(lesson, lesson.task.solution)
    ready = prepare_launch(request, 512 << 20, engine=engine_of(request))
    before = {name: one.copy_to_host() for name, one in ready.buffers.items()}
    ready.launcher(*ready.values)
    checked = {buffer for check in lesson.task.checks for buffer in check.results}
    expected = EXPECTED[name](before)
    assert set(expected) == checked
    for buffer, right in expected.items():
        got = ready.buffers[buffer].copy_to_host().reshape(-1)
        np.testing.assert_allclose(got, np.asarray(right).reshape(-1), rtol=2e-6)


def test_what_relies_on_lanes_in_lockstep_does_not_pass() -> None:
    """From 7.0 on `__activemask()` may return fewer than all lanes: under the adversarial schedule
    lane 0 runs alone, so that it adds 1."""
    lesson = find_lesson("race")
    assert lesson is not None
    assert lesson.task is not None
    luck = lesson.task.solution.replace("__ballot_sync(0xffffffffu, 1)", "__activemask()")
    assert luck != lesson.task.solution
    verdict = grade(lesson, luck)
    assert not verdict.passed
    assert [one.passed for one in verdict.checks] == [False, True, True]
    assert "adversarial" in verdict.checks[0].measured
    assert grade(lesson, lesson.task.solution).passed
