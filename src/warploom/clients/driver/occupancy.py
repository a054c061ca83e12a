"""Computes how many blocks of a kernel fit, and which block size fills the device best."""

from __future__ import annotations

import ctypes
import math

from warploom.clients.driver.attributes_of_functions import max_threads
from warploom.clients.driver.launches import configuration_of
from warploom.clients.driver.programs import Function, function_at
from warploom.clients.driver.results import DriverError, Result
from warploom.clients.driver.state import state
from warploom.clients.driver.table import entry
from warploom.clients.driver.words import put, put_int, unsigned
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.host.clusters import PORTABLE_BLOCKS, cluster_of

_SHARED_OF_BLOCK = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)


def _blocks(function: Function, threads: int, dynamic: int) -> int:
    resources = function.kernel.resources
    shared = function.kernel.program.shared_bytes + dynamic
    demand = Demand(threads, resources.registers, shared, resources.barriers)
    return occupancy_of(state.device.spec, demand).active_blocks


@entry(
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def max_active_blocks(count: int, function: int, threads: int, dynamic: int) -> None:
    found = function_at(function)
    if threads <= 0:
        raise DriverError(Result.INVALID_VALUE)
    put_int(count, _blocks(found, threads, unsigned(dynamic)))


@entry("cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxPotentialBlockSizeWithFlags")
def best_block(
    grid: int, block: int, function: int, shared_of: int, dynamic: int, limit: int
) -> None:
    """Finds the largest block among those that keep most threads on an SM."""
    found, spec = function_at(function), state.device.spec
    most = max_threads(found)
    most = min(most, limit) if limit > 0 else most

    def blocks(size: int) -> int:
        shared = _SHARED_OF_BLOCK(shared_of)(size) if shared_of else unsigned(dynamic)
        return _blocks(found, size, shared)

    best = max(range(most, 0, -spec.warp_size), key=lambda size: size * blocks(size))
    put_int(block, best)
    put_int(grid, blocks(best) * spec.sms)


@entry("cuOccupancyAvailableDynamicSMemPerBlock")
def available_shared(size: int, function: int, blocks: int, threads: int) -> None:
    """Shared memory that a block may add when so many share an SM."""
    found, spec = function_at(function), state.device.spec
    if blocks <= 0 or threads <= 0:
        raise DriverError(Result.INVALID_VALUE)
    each = spec.shared_bytes_per_sm // blocks // spec.shared_allocation_unit
    available = each * spec.shared_allocation_unit - spec.shared_reserved_per_block
    available = (
        min(available, spec.shared_bytes_per_block_optin) - found.kernel.program.shared_bytes
    )
    put(size, max(0, available))


@entry("cuOccupancyMaxActiveClusters")
def max_active_clusters(count: int, function: int, config: int) -> None:
    """Clusters of a launch that the device holds at once."""
    found, (threads, dynamic, blocks) = function_at(function), _configured(function, config)
    resident = _blocks(found, threads, dynamic) * state.device.spec.sms
    put_int(count, resident // blocks)


@entry("cuOccupancyMaxPotentialClusterSize")
def largest_cluster(size: int, function: int, config: int) -> None:
    """Blocks of the largest cluster that a launch can have."""
    found, (threads, dynamic, _) = function_at(function), _configured(function, config)
    resident = _blocks(found, threads, dynamic) * state.device.spec.sms
    put_int(size, min(PORTABLE_BLOCKS, resident))


def _configured(function: int, config: int) -> tuple[int, int, int]:
    """Returns the threads of a block, its dynamic shared memory and the blocks of a cluster."""
    if not config:
        raise DriverError(Result.INVALID_VALUE)
    block, dynamic, asked = configuration_of(config)
    cluster, _ = cluster_of(function_at(function).kernel.function, asked)
    return math.prod(block), dynamic, math.prod(cluster)
