"""The streaming multiprocessor (SM) of each block: what `%smid` says.

The architecture leaves it open (PTX ISA, "Special Registers: %smid"); blocks of a cluster run on
SMs that lie together (CUDA C++ Programming Guide, "Thread Block Clusters"). Here the blocks of a
grid are dealt out in the order of their numbers, one to each SM, round after round, as the first
blocks of a launch are on hardware; which block ends first does not matter. So an SM never has more
blocks of a grid that is resident as a whole than the device holds there, and the answer depends on
the launch alone: not on the schedule, the machine or the number of workers.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable


@jitable
def sm_of(cluster: int, rank: int, size: int, sms: int) -> int:
    """Return the SM of the block at `rank` of a cluster of `size` blocks, which is number `cluster`
    of the grid, on a device of so many SMs. The blocks of a cluster are on SMs side by side; SMs
    that are left over at the end have none. A block of its own is a cluster of one."""
    together = sms // size
    if together == 0:
        return rank % sms
    return cluster % together * size + rank
