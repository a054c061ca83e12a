"""`wl.occupancy`: how many blocks of a kind an SM of a device holds."""

from __future__ import annotations

from warploom.core.errors import LaunchError
from warploom.core.options import checked
from warploom.devices.catalog import find_device
from warploom.devices.occupancy import Demand, Occupancy, occupancy_of
from warploom.devices.spec import DeviceSpec
from warploom.host.device import Device


@checked("occupancy(...)")
def occupancy(
    device: Device | DeviceSpec | str,
    block_size: int,
    registers_per_thread: int = 32,
    shared_bytes_per_block: int = 0,
    barriers_per_block: int = 1,
) -> Occupancy:
    """Returns what an SM holds of blocks of `block_size` threads.

    `shared_bytes_per_block` is static and dynamic memory together. The result has `active_blocks`
    (0 where not even one fits), `active_warps`, `fraction` and `limiters`. Raises LaunchError for
    numbers that mean nothing.
    """
    given = (registers_per_thread, shared_bytes_per_block, barriers_per_block)
    if block_size < 1 or min(given) < 0:
        raise LaunchError(
            f"invalid block of {block_size} threads with {registers_per_thread} registers each, "
            f"{shared_bytes_per_block} bytes of shared memory and {barriers_per_block} barriers: a "
            "block must have at least one thread, and the other numbers must not be negative"
        )
    if isinstance(device, str):
        device = find_device(device)
    spec = device.spec if isinstance(device, Device) else device
    return occupancy_of(spec, Demand(block_size, *given))
