"""Processes dependent launches (`griddepcontrol`) in the race detector: which threads know that the
previous launch has ended.

The end of that launch is represented as a release by a block that this launch does not have, so
whatever orders threads passes it on. Source: PTX ISA, "griddepcontrol".
"""

from __future__ import annotations

from warploom.detector.clocks import learn_set
from warploom.detector.knowledge import knows_other_block, set_current_thread
from warploom.detector.layout import AFTER_WAIT, BEFORE_WAIT
from warploom.detector.other_blocks import set_knows
from warploom.detector.records import DetectorEvent, DetectorState, ResidentBlock
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def wait_for_launch(state: DetectorState, event: DetectorEvent) -> None:
    """Processes `griddepcontrol.wait`: adds the block set of the end of the previous launch
    (`earlier_launch`) to what the lanes of an event know; nothing if that launch ended before this
    one began."""
    left = event.lanes if state.earlier_launch else 0
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        learn_set(state, state.earlier_launch)


@jitable
def trigger_launch(state: DetectorState, event: DetectorEvent) -> None:
    """Processes `griddepcontrol.launch_dependents`: adds to `triggered` in the state, for each lane
    that executes it, AFTER_WAIT if the lane knows that the previous launch has ended, else
    BEFORE_WAIT."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        state.triggered |= AFTER_WAIT if has_waited(state) else BEFORE_WAIT


@jitable
def has_waited(state: DetectorState) -> int:
    """Returns whether the current thread knows that the previous launch has ended; true if that
    ended before this one began."""
    if state.earlier_launch == 0:
        return 1
    # The set's one entry follows its count and begins with the number of the block that stands for
    # the previous launch. All of its interval 0 is known, so thread and time may be any: 0.
    return knows_other_block(state, state.words[state.earlier_launch + 1], 0, 0, 0)


@jitable
def block_has_waited(state: DetectorState) -> int:
    """Returns whether all threads of the current block know, by a barrier of all, that the previous
    launch has ended; true if that ended before this one began."""
    if state.earlier_launch == 0:
        return 1
    return set_knows(
        state,
        ResidentBlock(state, state.current_slot).set,
        state.words[state.earlier_launch + 1],
        0,
        0,
        0,
    )
