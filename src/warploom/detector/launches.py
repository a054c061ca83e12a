"""Dependent launches: who knows that the launch before this one has ended.

The end of that launch is the release of a block that this launch does not have, so that it becomes
known to others by whatever orders threads. Source: PTX ISA, "griddepcontrol".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.clocks import learn_set
from warploom.detector.knowledge import become, knows_of_others
from warploom.detector.layout import (
    AFTER_WAIT,
    B_KNOWN,
    BEFORE_WAIT,
    E_LANES,
    E_WARP,
    EARLIER_LAUNCH,
    ME_SLOT,
    TRIGGERED,
)
from warploom.detector.other_blocks import known_of_other
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def wait_for_launch(s: Any, e: Any) -> None:
    """Let the lanes of an event know that the launch before theirs has ended."""
    left = e[E_LANES] if s[EARLIER_LAUNCH] else 0
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        learn_set(s, s[EARLIER_LAUNCH])


@jitable
def trigger_launch(s: Any, e: Any) -> None:
    """Note that the lanes of an event let the launch behind theirs begin."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        s[TRIGGERED] |= AFTER_WAIT if has_waited(s) else BEFORE_WAIT


@jitable
def has_waited(s: Any) -> int:
    """Return whether the current thread knows that the launch before its own has ended."""
    if s[EARLIER_LAUNCH] == 0:
        return 1
    return knows_of_others(s, s[s[EARLIER_LAUNCH] + 1], 0, 0, 0)


@jitable
def block_has_waited(s: Any) -> int:
    """Return whether all threads of the current block know that the launch before has ended."""
    if s[EARLIER_LAUNCH] == 0:
        return 1
    return known_of_other(s, s[s[ME_SLOT] + B_KNOWN], s[s[EARLIER_LAUNCH] + 1], 0, 0, 0)
