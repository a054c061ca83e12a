"""Tests when launches that update shared memory count as contended, and for how long."""

from __future__ import annotations

from typing import Any, cast

from warploom.machine.compiled.block_times import LEAST_GAIN, REST, SAMPLES, BlockTimes

CODE, OTHER_CODE = cast(Any, "code"), cast(Any, "other code")
SLOW, FAST = LEAST_GAIN + 0.1, 0.5
"""Times on several workers, where one worker has 1."""


def alone(launches: int = 1, code: Any = CODE, times: BlockTimes | None = None) -> BlockTimes:
    """Returns times after some launches on one worker."""
    times = times or BlockTimes()
    for _ in range(launches):
        times.record_alone(code, 1.0)
    return times


def share(times: BlockTimes, *seconds: float, code: Any = CODE) -> None:
    """Records shared launches."""
    for block in seconds:
        times.record_contention(code, block)


def test_a_single_slow_launch_is_no_contention() -> None:
    times = alone()
    share(times, SLOW, FAST, FAST)
    assert not times.is_contended


def test_workers_contend_if_launches_save_no_time() -> None:
    times = alone()
    share(times, *[SLOW] * (SAMPLES - 1))
    assert not times.is_contended
    share(times, SLOW)
    assert times.is_contended
    times.record(1.0, 1)
    assert not times.is_long


def test_contention_is_measured_again_after_twice_as_many_launches_each_time() -> None:
    times = alone()
    for rest in (REST, 2 * REST):
        share(times, *[SLOW] * SAMPLES)
        alone(rest - 1, times=times)
        assert times.is_contended
        alone(times=times)
        assert not times.is_contended


def test_other_code_has_times_of_its_own() -> None:
    times = alone()
    share(times, *[SLOW] * SAMPLES)
    alone(code=OTHER_CODE, times=times)
    assert not times.is_contended
    share(times, *[SLOW] * SAMPLES)
    assert not times.is_contended
