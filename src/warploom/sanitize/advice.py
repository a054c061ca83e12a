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
            "Bulk copies access memory by another proxy: let the writer execute"
            " fence.proxy.async (cuda::ptx::fence_proxy_async) before the barrier."
        )
    if kind == "stale":
        return (
            "Caches of textures and surfaces are not kept like memory during a launch: read what"
            " another launch has written, or read it by an ordinary load and write it by an"
            " ordinary store."
        )
    if space == "tensor":
        return (
            "Wait for tcgen05.ld and tcgen05.st by tcgen05.wait, for other work by the mbarrier of"
            " a tcgen05.commit behind it; then synchronise the threads."
        )
    if copies:
        what = "Wait for the copy" if copies & 2 else "Order the access before the copy"
        return (
            f"{what}: by cp.async.wait_group with a number of groups that leaves it out, or its"
            f" mbarrier's phase, and then by a barrier where another thread is meant."
        )
    if narrow:
        return (
            "Both are atomic, but a scope of .cta leaves threads of other blocks out: use the scope"
            " of the device (atomicAdd, not atomicAdd_block)."
        )
    if update is not None:
        return _update_advice(update)
    if kind == "unpromised":
        return (
            "volatile orders nothing between threads: use cuda::atomic_ref, or a release and an"
            " acquire around them."
        )
    if kind == "same-value":
        return "Both write the same bytes; C++ calls that a data race all the same."
    return _order_advice(space)


def _update_advice(update: Update) -> str:
    """Returns the remedy for threads that each load an element, change it and store it."""
    atomic = (
        f"{update.atomic}()" if update.atomic else "an atomic operation, or atomicCAS() in a loop"
    )
    return (
        "Threads read, change and write the same element; one overwrites what the other wrote, and"
        f" a barrier does not help. Use {atomic}."
    )


def fence_advice(*, before: bool, after: bool) -> str:
    """Returns the remedy for accesses to tensor memory that lack a fence."""
    needed = (
        "tcgen05.fence::before_thread_sync behind the earlier one and its tcgen05.wait",
        "tcgen05.fence::after_thread_sync in front of the later one",
    )
    missing = " and ".join(
        text for text, wanted in zip(needed, (before, after), strict=True) if wanted
    )
    return (
        f"The threads synchronise, but their work in tensor memory needs fences too: put {missing}."
    )


def _order_advice(space: str) -> str:
    """Returns the remedy for ordinary accesses."""
    if space == "shared":
        return "Nothing orders them. Put __syncthreads() between them, or __syncwarp() in a warp."
    return (
        "Nothing orders them. In a block, put __syncthreads() between them; between blocks, use"
        " atomics, a release and an acquire, or two launches."
    )
