"""Assigns thread blocks to streaming multiprocessors (SMs): the value of `%smid`.

The architecture leaves it open (PTX ISA, "Special Registers: %smid"), except that the blocks of a
cluster run on neighbouring SMs (CUDA C++ Programming Guide, "Thread Block Clusters"). Here blocks
are assigned round-robin by grid index, as hardware assigns the first blocks of a launch; which
block ends first does not matter. So if a whole grid is resident, no SM exceeds the blocks that the
device holds there, and the result depends on the launch alone: not on the schedule, the machine or
the number of workers.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable


@jitable
def sm_of(cluster: int, rank: int, size: int, sms: int) -> int:
    """Returns the SM of the block at `rank` of cluster number `cluster`, on a device of `sms` SMs.

    Clusters of `size` blocks (1 without clusters) occupy groups of `size` neighbouring SMs in turn,
    cluster 0 the first; SMs at the end that are too few for a cluster stay empty. If the device has
    fewer SMs than a cluster has blocks, the ranks wrap around.
    """
    together = sms // size
    if together == 0:
        return rank % sms
    return cluster % together * size + rank
