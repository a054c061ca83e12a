"""Builds the state of a device's memory caches before a launch: all empty, sized as the device
catalog states."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.cost.caches import LOCAL_BASE, CacheEntry, CacheHierarchy
from warploom.cost.device_rules import AccessRules
from warploom.devices.spec import DeviceSpec
from warploom.machine.launch import WARP_SIZE, Launch, shared_bytes
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.program import Program

LINE_BYTES = 128
WAYS, L2_WAYS = 4, 16
"""The associativity of each cache but L2, and of L2. Estimates: NVIDIA does not publish them."""


NO_CACHES = np.zeros(1, np.int64)
"""The array of a launch whose rules do not count caches, so that nothing reads it."""


def empty_caches(
    spec: DeviceSpec, rules: AccessRules, program: Program, launch: Launch, memory: DeviceMemory
) -> npt.NDArray[np.int64]:
    """Returns the array of the simulated caches (`cost.caches`), empty: a `CacheHierarchy`, then
    the lines, all 0, of L1, texture and constant cache, once for each SM that can have a block, and
    of L2 once. The size of L1 is what the launch's shared memory leaves of it. NO_CACHES if the
    rules do not count caches."""
    if not rules.caches:
        return NO_CACHES
    hierarchy = CacheHierarchy(np.zeros(CacheHierarchy.WORDS, np.int64), 0)
    # SMs without a thread block have no accesses.
    hierarchy.sms, hierarchy.origin = min(spec.sms, launch.blocks), memory.base
    end = CacheHierarchy.WORDS
    for level, size, ways, copies in (
        (hierarchy.l1, l1_bytes(spec, shared_bytes(program, launch), launch), WAYS, hierarchy.sms),
        (hierarchy.texture, spec.texture_cache_bytes, WAYS, hierarchy.sms),
        (hierarchy.constant, spec.constant_cache_bytes, WAYS, hierarchy.sms),
        (hierarchy.l2, spec.l2_bytes, L2_WAYS, 1),
    ):
        level.first_entry, level.sets, level.ways = end, size // (LINE_BYTES * ways), ways
        level.words_per_sm = level.sets * ways * CacheEntry.WORDS
        end += level.words_per_sm * copies
    caches = np.zeros(end, np.int64)
    caches[: CacheHierarchy.WORDS] = hierarchy.words
    return caches


def l1_bytes(spec: DeviceSpec, shared: int, launch: Launch) -> int:
    """Returns the bytes of L1 that remain beside shared memory, if both are one memory, else all of
    L1; `shared` is the bytes that a thread block needs.

    Before compute capability 7.0 the carve-out for shared memory is as large as it can be, the
    default of these devices. From 7.0 on it is the smallest that holds the blocks which are
    resident on an SM (at least one), each with the bytes that the system reserves; the largest if
    none does."""
    if not spec.l1_holds_shared:
        return spec.l1_bytes
    if spec.compute_capability < (7, 0):
        return spec.l1_bytes - spec.shared_bytes_per_sm
    blocks = max(1, launch.schedule.resident_blocks // spec.sms)
    needed = blocks * (shared + spec.shared_reserved_per_block)
    carved = next(
        (capacity for capacity in spec.shared_capacities if capacity >= needed),
        spec.shared_bytes_per_sm,
    )
    return spec.l1_bytes - carved


def local_address(program: Program, launch: Launch, block: int, warp: int) -> int:
    """Returns the address at which the local memory of a warp begins in the address space of the
    cache model; warps are numbered through the launch, and each has its own lines."""
    warps = block * launch.warps_per_block + warp
    lines = local_lines(program) * (launch.warp_size // WARP_SIZE)
    return LOCAL_BASE + warps * lines * LINE_BYTES


def local_lines(program: Program) -> int:
    """Returns the cache lines (128 bytes) of local memory of 32 lanes: one for each 4-byte word of
    a thread's, since word w of all lanes is contiguous."""
    return -(-program.local_bytes // 4)
