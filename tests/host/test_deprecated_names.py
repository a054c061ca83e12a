"""Names of before that users may have in their programs: each works, and warns with its new
name."""

from __future__ import annotations

from operator import attrgetter

import pytest

import warploom as wl
from warploom.ir.options import Pass, disabled


def test_the_reason_for_one_worker() -> None:
    gpu = wl.Device(engine="reference")
    run = gpu.compile(".version 8.0\n.target sm_75\n.entry k() { ret; }", "ptx")["k"][1, 1]()
    with pytest.warns(DeprecationWarning, match="use `serial_reason`"):
        assert attrgetter("alone_because")(run) == run.serial_reason


def test_the_size_of_local_memory() -> None:
    with pytest.warns(DeprecationWarning, match="use `padded_bytes`"):
        assert attrgetter("room")(wl.LocalMemory(1)) == wl.LocalMemory(1).padded_bytes >= 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shapes", Pass.UNIFORMITY),
        ("leaving", Pass.MASKED_LOOPS),
        ("asides", Pass.PREDICATED_BLOCKS),
        ("put-off", Pass.STORE_BATCHING),
        ("rounds", Pass.REGION_VERSIONS),
        ("sweeps", Pass.WARP_LOOPS),
        ("courses", Pass.STATIC_SCHEDULE),
        ("relay", Pass.WARP_ORDER),
    ],
)
def test_passes_that_are_left_out(monkeypatch: pytest.MonkeyPatch, old: str, new: Pass) -> None:
    monkeypatch.setenv("WARPLOOM_DISABLE", old)
    with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: use {new}"):
        assert disabled() == {new}
