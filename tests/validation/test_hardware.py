"""What runs here against what an H100 counted (validation/hardware/h100.json)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from compare import FINDINGS, compared, names, record, verdicts
from records import HERE, read_record, write_record

import warploom as wl
from warploom.devices.catalog import find_device
from warploom.devices.timing import find_timing

EVERY = 12
"""One kernel of so many runs outside of the nightly job."""

MOST_INSTRUCTIONS_OFF = 0.15

OTHERWISE = {
    **dict.fromkeys(
        ("CSR, thread per row", "argmax of rows", "Jacobi, thread per row", "filter of 40 taps"),
        "ptxas unrolls a loop whose turns differ by lane",
    ),
    **dict.fromkeys(
        ("BFS, one level", "hash table, insertion"), "threads race for nodes, and for slots"
    ),
    "hash table, look-up": "lanes that leave a loop at different places meet elsewhere there",
    "decision tree": "ptxas guards a load",
}
"""Kernels whose global accesses on hardware are not exactly those of the PTX, and why."""

GLOBAL = (
    *("global load requests", "global load sectors", "global store requests"),
    *("global store sectors", "atomic requests"),
)

FALSE_ALARMS = {
    "flag_of_too_narrow_a_scope_pass": "a flag in the other block's shared memory orders the data",
    "fence_of_the_cluster_pass": "so does a fence between the two",
    "unwritten_bytes_are_copied_pass": "what is copied is not used",
    "arriving_waits_for_nobody_pass": "`barrier.arrive` does not wait",
}
"""Kernels without an error in which compute-sanitizer finds one, and why there is none."""


def _kernels() -> list[ParameterSet]:
    rare = (pytest.mark.nightly,)
    return [pytest.param(one, marks=rare if at % EVERY else ()) for at, one in enumerate(names())]


@pytest.mark.parametrize("name", _kernels())
def test_counters_are_those_of_an_h100(name: str) -> None:
    found = compared(name, timed=False)
    assert found.error("registers") == 0
    assert abs(found.error("machine instructions")) <= MOST_INSTRUCTIONS_OFF
    off = {key: found.counters[key] for key in GLOBAL if key in found.counters}
    assert name in OTHERWISE or all(ours == theirs for ours, theirs in off.values()), off


def test_every_finding_of_compute_sanitizer_is_one_here() -> None:
    """What this project finds in each kernel is tested in tests/sanitize/test_cases.py."""
    from cases import FOLDER, read_cases

    kinds = {one.name: one.kinds for p in FOLDER.glob("*.cu") for one in read_cases(p.stem).cases}
    seen, found = verdicts()
    assert set(seen) <= set(kinds)
    assert set(FINDINGS.values()) <= set().union(*found.values())
    alarms = {name for name in seen if found[name] and not kinds[name]}
    assert alarms == set(FALSE_ALARMS)


def test_a_record_is_written_as_it_is_read(tmp_path: Path) -> None:
    write_record(tmp_path / "again.json", record())
    assert read_record(tmp_path / "again.json") == record()
    assert (tmp_path / "again.json").read_text("utf-8") == (HERE / "h100.json").read_text("utf-8")


def test_the_time_of_a_launch_is_that_of_the_record() -> None:
    """Half of the 69 kernels spend less, half more cycles without a block on any SM than the model
    adds: elapsed cycles less those of the busiest SM, at 1,980 MHz."""
    timing = find_timing(find_device("h100"))
    launches = [
        one.metrics for key, one in record().launches.items() if key.startswith("families/")
    ]
    idle = [one["sm__cycles_elapsed.max"] - one["sm__cycles_active.max"] for one in launches]
    assert len(idle) == 69
    assert timing.launch_us == pytest.approx(np.median(idle) / 1980, rel=0.01)


def test_elapsed_cycles_are_those_of_an_sm_and_of_the_launch() -> None:
    gpu = wl.Device("h100", record=True)
    kernel = gpu.compile('extern "C" __global__ void k(int *x) { x[threadIdx.x] = 1; }')["k"]
    timing = kernel[1, 32](gpu.zeros(32, np.int32)).time()
    assert timing.elapsed_cycles - timing.cycles == round(timing.spec.launch_us * 1980)
    assert timing.seconds == pytest.approx(timing.elapsed_cycles / 1980e6)
