"""Gives the remedy for accesses that are not ordered, as text of a finding."""

from __future__ import annotations

from warploom.program.updates import Update


def race_advice(
    kind: str, space: str, *, narrow: bool, copies: int, update: Update | None = None
) -> str:
    """Returns the remedy for two unordered accesses. `narrow`: both are strong, but the scope of
    one excludes the other's thread. `copies`: bit 0 is set if the later access is by an
    asynchronous copy, bit 1 if the earlier one is. `update`: that of which the accesses are the
    load and the store, in two threads."""
    if kind == "proxy":
        return (
            "Bulk copies access memory through the async proxy: the writer must execute "
            "fence.proxy.async (cuda::ptx::fence_proxy_async) before the barrier."
        )
    if kind == "stale":
        return (
            "Texture and surface caches are not coherent with memory during a launch. Use textures "
            "and surfaces only for data that an earlier launch wrote; for other data, use ordinary "
            "loads and stores."
        )
    if space == "tensor":
        return (
            "Wait for tcgen05.ld and tcgen05.st with tcgen05.wait, and for other operations with "
            "the mbarrier of a subsequent tcgen05.commit; then synchronize the threads."
        )
    if copies:
        what = "Wait for the copy" if copies & 2 else "Order the access before the copy"
        return (
            f"{what}: use cp.async.wait_group with a count small enough that it waits for the "
            "copy, or wait for the copy's mbarrier phase. If another thread performs the access, "
            "add a barrier."
        )
    if narrow:
        return (
            "Both accesses are atomic, but .cta scope excludes threads of other blocks: use "
            "device scope (atomicAdd, not atomicAdd_block)."
        )
    if update is not None:
        return _update_advice(update)
    if kind == "unpromised":
        return (
            "volatile does not order accesses by different threads: use cuda::atomic_ref, or "
            "release and acquire operations."
        )
    if kind == "same-value":
        return "Both accesses write the same value, but this is still a data race in C++."
    return _order_advice(space)


def _update_advice(update: Update) -> str:
    """Returns the remedy for threads that each load an element, change it and store it."""
    atomic = (
        f"{update.atomic}()" if update.atomic else "an atomic operation, or atomicCAS() in a loop"
    )
    return (
        "Two threads read, modify and write the same element, so one thread overwrites the value "
        f"that the other wrote. A barrier does not prevent this. Use {atomic}."
    )


def fence_advice(*, before: bool, after: bool) -> str:
    """Returns the remedy for accesses to tensor memory that lack a fence."""
    needed = (
        "tcgen05.fence::before_thread_sync after the earlier operation and its tcgen05.wait",
        "tcgen05.fence::after_thread_sync before the later operation",
    )
    missing = " and ".join(
        text for text, wanted in zip(needed, (before, after), strict=True) if wanted
    )
    return f"The threads synchronize, but tensor memory operations also need fences: put {missing}."


def _order_advice(space: str) -> str:
    """Returns the remedy for ordinary accesses."""
    if space == "shared":
        return (
            "Nothing orders the two accesses. Put __syncthreads() between them, or __syncwarp() "
            "within a warp."
        )
    return (
        "Nothing orders the two accesses. Within a block, put __syncthreads() between them; "
        "between blocks, use atomics, release and acquire operations, or two launches."
    )
