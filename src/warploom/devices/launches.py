"""Refuses launches that a device cannot take, whatever else is running on it."""

from __future__ import annotations

from warploom.core.errors import Dim3, LaunchError
from warploom.devices.occupancy import Demand, registers_allocated
from warploom.devices.spec import DeviceSpec


def check_launch(spec: DeviceSpec, grid: Dim3, block: Dim3, shared_bytes: int) -> None:
    """Raises LaunchError unless the device can launch such blocks.

    `shared_bytes` is static and dynamic shared memory of a block together. More than a block may
    have by default counts as asked for: the limit is the one that a kernel can opt in to. Source:
    CUDA C++ Programming Guide 12.9, "Technical Specifications per Compute Capability".
    """
    _check_dims(spec, "grid", "blocks", grid, spec.max_grid_dims)
    _check_dims(spec, "block", "threads", block, spec.max_block_dims)
    threads = block[0] * block[1] * block[2]
    if threads > spec.max_threads_per_block:
        raise LaunchError(
            f"a block of {_times(block)} = {threads} threads is too large: {spec.title} (compute "
            f"capability {spec.cc}) supports at most {spec.max_threads_per_block} threads per "
            "block. Use smaller blocks and more of them.",
            resource="threads",
            requested=threads,
            limit=spec.max_threads_per_block,
        )
    limit = spec.shared_bytes_per_block_optin
    if not 0 <= shared_bytes <= limit:
        raise LaunchError(
            f"a block cannot have {shared_bytes:,} bytes of shared memory: {spec.title} (compute "
            f"capability {spec.cc}) allows 0 to {limit:,} bytes per block. "
            "Use smaller tiles, or a device with more shared memory.",
            resource="shared",
            requested=shared_bytes,
            limit=limit,
        )


MOST_LOCAL_BYTES = 512 * 1024
"""Local memory of a thread (CUDA C++ Programming Guide 12.9, "Technical Specifications per Compute
Capability"; it was 16 KiB on 1.x, which is not enforced)."""


def check_local(spec: DeviceSpec, local_bytes: int) -> None:
    """Raises LaunchError where a thread wants more local memory than there can be."""
    if local_bytes > MOST_LOCAL_BYTES:
        raise LaunchError(
            f"a thread needs {local_bytes:,} bytes of local memory, including its stack, but "
            f"{spec.title} allows at most {MOST_LOCAL_BYTES:,}. Use smaller arrays, or keep them "
            "in global memory.",
            resource="local",
            requested=local_bytes,
            limit=MOST_LOCAL_BYTES,
        )


def check_registers(spec: DeviceSpec, threads: int, registers: int, source: str) -> None:
    """Raises LaunchError if a block of `threads` threads with `registers` registers each does not
    fit on an SM. `source` is what counted the registers: "ptxas" or "estimate"."""
    most = spec.max_registers_per_thread
    if registers > most:
        raise LaunchError(
            f"a thread needs {registers} registers ({source}), but {spec.title} (compute "
            f"capability {spec.cc}) has at most {most} per thread. Compile with a register "
            "limit (-maxrregcount, .maxnreg).",
            resource="registers",
            requested=registers,
            limit=most,
        )
    needed = registers_allocated(spec, Demand(threads, registers))
    if needed > spec.registers_per_block:
        raise LaunchError(
            f"a block of {threads} threads with {registers} registers each ({source}) needs "
            f"{needed:,} registers, but {spec.title} (compute capability {spec.cc}) has "
            f"{spec.registers_per_block:,} per block. Use smaller blocks, or fewer registers "
            f"(__launch_bounds__({threads}), -maxrregcount).",
            resource="registers",
            requested=needed,
            limit=spec.registers_per_block,
        )


def _check_dims(spec: DeviceSpec, what: str, of: str, dims: Dim3, limits: Dim3) -> None:
    for axis, size, limit in zip("xyz", dims, limits, strict=True):
        if not 1 <= size <= limit:
            empty = " Skip launches that have no work." if size == 0 else ""
            raise LaunchError(
                f"a {what} of {_times(dims)} {of}: its {axis} dimension is {size}, but must be "
                f"from 1 to {limit:,} on {spec.title} (compute capability {spec.cc}).{empty}",
                resource=f"{what}.{axis}",
                requested=size,
                limit=limit,
            )


def _times(dims: Dim3) -> str:
    return " x ".join(str(n) for n in dims)
