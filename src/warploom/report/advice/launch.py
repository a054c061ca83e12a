"""Advice about the shape of a launch, and about what its blocks take of an SM."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.devices.gains import Gain, gains
from warploom.report.advice.case import Advice, Case

FEW_THREADS = 128
"""Below so many threads a block, blocks run out before warps do on every device."""

LOW_OCCUPANCY = 0.5


def partial_warps(case: Case) -> Iterator[Advice]:
    """Yields advice for a block size that is no multiple of the warp size, which leaves lanes of
    its last warp without a thread."""
    size, warp = case.threads_per_block, case.spec.warp_size
    warps = -(-size // warp)
    lost = warps * warp - size
    if lost:
        yield Advice(
            "partial warps",
            None,
            f"a block of {size} threads fills {warps} warps but for {lost} lanes: "
            f"{100 * lost / (warps * warp):.1f} % of all lanes never do anything",
            f"Make the block size a multiple of {warp}: {warps * warp}, or"
            f" {max(1, warps - 1) * warp}.",
        )


def small_blocks(case: Case) -> Iterator[Advice]:
    """Fewer than 128 threads a block."""
    if case.threads_per_block < FEW_THREADS:
        yield Advice(
            "small blocks",
            None,
            f"{case.threads_per_block} threads a block; an SM takes at most"
            f" {case.spec.max_blocks_per_sm} blocks and {case.spec.max_threads_per_sm} threads",
            f"Use blocks of {FEW_THREADS} to 256 threads, so that an SM can be filled and a block's"
            f" cost is shared by more of them.",
        )


def small_grid(case: Case) -> Iterator[Advice]:
    """Fewer blocks than the device holds at once."""
    holds = case.spec.sms * case.occupancy.active_blocks
    if case.blocks < holds:
        yield Advice(
            "small grid",
            None,
            f"{case.blocks:,} blocks, and the {case.spec.sms} SMs hold {holds:,} such blocks at"
            f" once: {100 * case.blocks / holds:.1f} % of that are used",
            "Give the device more blocks: more work in a launch, less work a thread, or several"
            " kernels at once.",
        )


_CHANGES = {
    "registers": "registers a thread (-maxrregcount, __launch_bounds__)",
    "shared_bytes": "bytes of shared memory a block",
    "threads": "threads a block",
}


def low_occupancy(case: Case) -> Iterator[Advice]:
    """Less than half of the warps that an SM could hold."""
    occupancy = case.occupancy
    if occupancy.fraction < LOW_OCCUPANCY:
        steps = [_step(gain) for gain in gains(case.spec, occupancy.demand)]
        yield Advice(
            "low occupancy",
            None,
            f"{occupancy.active_warps} of {occupancy.max_warps} warps fit on an SM"
            f" ({100 * occupancy.fraction:.0f} %), limited by {' and '.join(occupancy.limiters)}",
            f"The next step: {'; or '.join(steps)}." if steps else "Nothing smaller helps.",
        )


def _step(gain: Gain) -> str:
    return (
        f"{gain.after:,} instead of {gain.before:,} {_CHANGES[gain.resource]} gives"
        f" {100 * gain.occupancy.fraction:.0f} %"
    )
