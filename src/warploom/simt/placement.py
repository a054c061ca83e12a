"""Assigns the slots of resident thread blocks to streaming multiprocessors (SMs): the value of
`%smid`, for a launch that runs alone (`machine.placement`: beside others).

Blocks go to SMs with free capacity: the first are spread over all SMs, and each later one gets the
slot of the next that ends (CUDA C++ Programming Guide, "Hardware Implementation"). So a block has
a slot (`simt.block_slots.free_slot`), slots belong to SMs in turn, and no SM ever holds more blocks
than fit. The architecture leaves open which SM that is (PTX ISA, "Special Registers: %smid"),
except that the blocks of a cluster run on neighboring SMs (guide, "Thread Block Clusters").
"""

from __future__ import annotations


def sm_of(slot: int, size: int, sms: int) -> int:
    """Returns the SM to which a slot belongs, on a device of `sms` SMs.

    Clusters of `size` blocks (1 without clusters) occupy groups of `size` neighboring SMs in turn,
    the first slots the first; SMs at the end that are too few for a cluster stay empty. If the
    device has fewer SMs than a cluster has blocks, the ranks wrap around.
    """
    together = sms // size
    if together == 0:
        return slot % size % sms
    return slot // size % together * size + slot % size
