"""The attributes of a device, by CUDA's numbers.

What the catalog states comes from it. Of the others: sizes of textures are those of the CUDA C++
Programming Guide 12.9, "Technical Specifications per Compute Capability"; what depends on a machine
around the device (clocks, buses, links) is reported as absent.
"""

from __future__ import annotations

from warploom.devices.spec import DeviceSpec

KILOHERTZ = 1_000_000
"""The clock that is reported, in kHz: %clock counts instructions, and so does this."""


def attributes_of(spec: DeviceSpec) -> dict[int, int]:
    """Returns every attribute; those that stand for something absent are 0."""
    absent = dict.fromkeys(range(1, 162), 0)
    return absent | _limits(spec) | _textures(spec) | _abilities(spec)


def _limits(spec: DeviceSpec) -> dict[int, int]:
    major, minor = spec.compute_capability
    return {
        1: spec.max_threads_per_block,
        **dict(zip((2, 3, 4), spec.max_block_dims, strict=True)),
        **dict(zip((5, 6, 7), spec.max_grid_dims, strict=True)),
        8: spec.shared_bytes_per_block,
        9: spec.constant_bytes,
        10: spec.warp_size,
        11: (1 << 31) - 1,  # the longest pitch of a copy
        12: spec.registers_per_block,
        13: KILOHERTZ,
        16: spec.sms,
        33: 1,  # the bus number in BUS_ID
        36: KILOHERTZ,
        37: 256,  # the width of the memory bus, in bits: a nominal one
        38: spec.l2_bytes,
        39: spec.max_threads_per_sm,
        75: major,
        76: minor,
        81: spec.shared_bytes_per_sm,
        82: spec.registers_per_sm,
        87: 2,  # float operations for each of doubles: a nominal ratio
        97: spec.shared_bytes_per_block_optin,
        106: spec.max_blocks_per_sm,
        111: spec.shared_reserved_per_block,
    }


def _textures(spec: DeviceSpec) -> dict[int, int]:
    newer = spec.compute_capability >= (5, 0)
    wide = 131072 if newer else 65536
    deep = 16384 if newer else 4096
    flat = 32768
    return {
        14: 512,
        **dict.fromkeys((21,), wide),
        22: wide,
        23: 65536,
        **dict.fromkeys((24, 25, 26), deep),
        27: flat,
        28: flat,
        29: 2048,
        30: 512,
        42: flat,
        43: 2048,
        **dict.fromkeys((45, 46), flat),
        51: 32,
        52: flat,
        53: flat,
        54: 2046,
        55: flat,
        56: wide,
        57: 65536,
        58: deep,
        59: deep,
        60: deep,
        61: flat,
        62: 2048,
        63: flat,
        64: flat,
        65: 2048,
        66: flat,
        67: flat,
        68: 2046,
        69: 1 << 28,
        70: wide,
        71: 65000,
        72: 1 << 21,
        73: flat,
        74: flat,
        77: flat,
    }


def _abilities(spec: DeviceSpec) -> dict[int, int]:
    cooperative = spec.compute_capability >= (6, 0)
    present = (15, 19, 31, 40, 41, 44, 78, 79, 80, 83, 86, 89, 90, 91, 92, 93, 94, 99, 115)
    return {
        **dict.fromkeys(present, 1),
        95: int(cooperative),
        122: 1,
        123: 1,
        126: 1,
        129: 0,
        130: 0,
        131: -1,  # no node of the host is the device's
        134: -1,
    }
