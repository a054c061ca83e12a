"""Advice about the shape of a launch, and about what its blocks take of an SM."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.core.errors import Dim3
from warploom.devices.gains import Gain, gains
from warploom.report.advice.case import Advice, Case

FULL_ENOUGH = 0.75
"""The share of the blocks that a device holds at once from which on a grid is not called small."""

FEW_THREADS = 128
"""The threads of a block from which on warps, not blocks, limit an SM on every device."""

LOW_OCCUPANCY = 0.5

LEAST_IDLE = 0.2
"""The share of the block slots of all waves from which on those that the last one leaves empty are
reported (as Nsight Compute's rule "Tail Effect" does)."""


def partial_warps(case: Case) -> Iterator[Advice]:
    """Yields advice for a block size that is no multiple of the warp size, which leaves lanes of
    its last warp without a thread."""
    size, warp = case.threads_per_block, case.spec.warp_size
    warps = -(-size // warp)
    lost = warps * warp - size
    if lost:
        smaller = f", or {(warps - 1) * warp}" if warps > 1 else ""
        yield Advice(
            "partial warps",
            None,
            f"a block of {size} threads leaves {lost} lanes of its {warps} warps unused: "
            f"{100 * lost / (warps * warp):.1f} % of all lanes never do any work",
            f"Make the block size a multiple of {warp}: {warps * warp}{smaller}"
            f"{_longer_axis(case.block, warp)}.",
            case.total_cost * lost // (warps * warp),
        )


def _longer_axis(block: Dim3, warp: int) -> str:
    """Returns a hint for a block of one thread along x whose work is along another axis."""
    axis = "xyz"[block.index(max(block))]
    is_upright = block[0] == 1 and max(block) > 1
    return (
        (f" (along threadIdx.x, which is {warp} threads wide; now it is along .{axis})")
        if is_upright
        else ""
    )


def small_blocks(case: Case) -> Iterator[Advice]:
    """Yields advice for blocks so small that their number limits an SM to half of its warps."""
    occupancy = case.occupancy
    if "blocks" in occupancy.limiters and occupancy.fraction <= LOW_OCCUPANCY:
        yield Advice(
            "small blocks",
            None,
            f"{case.threads_per_block} threads per block; an SM holds at most "
            f"{case.spec.max_blocks_per_sm} blocks, which have only {occupancy.active_warps} of "
            f"its {occupancy.max_warps} warps",
            f"Use blocks of {FEW_THREADS} to 256 threads to fill the SMs.",
        )


def small_grid(case: Case) -> Iterator[Advice]:
    """Yields advice for a grid that leaves a part of the device's block slots empty."""
    holds = case.spec.sms * case.occupancy.active_blocks
    if case.blocks < FULL_ENOUGH * holds:
        yield Advice(
            "small grid",
            None,
            f"{case.blocks:,} blocks, but the {case.spec.sms} SMs hold {holds:,} such blocks at "
            f"once: the grid fills {100 * case.blocks / holds:.1f} % of the GPU",
            "Launch more blocks (more work per launch or less per thread), or several kernels at "
            "once.",
        )


def tail_effect(case: Case) -> Iterator[Advice]:
    """Yields advice for a grid whose last wave leaves a large part of the device without work, if
    all blocks take about as long."""
    holds = case.spec.sms * case.occupancy.active_blocks
    if not holds or case.blocks <= holds:
        return
    waves = -(-case.blocks // holds)
    last = case.blocks - (waves - 1) * holds
    idle = (holds - last) / (waves * holds)
    if idle >= LEAST_IDLE:
        yield Advice(
            "tail effect",
            None,
            f"{case.blocks:,} blocks run in {waves} waves of {holds:,} ({case.spec.sms} SMs, "
            f"{case.occupancy.active_blocks} block{'s'[: case.occupancy.active_blocks > 1]} each), "
            f"and the last has only {last:,}: if all take equally long, {100 * idle:.0f} % of the "
            "block slots are empty on average",
            f"Choose the work of a thread so that the blocks fill whole waves (at most "
            f"{(waves - 1) * holds:,}, or a little less than {waves * holds:,} blocks), or give "
            "each thread less work: with more and shorter waves, the last one costs less.",
        )


_CHANGES = {
    "registers": "registers per thread (keep fewer values live, for example in smaller arrays of a"
    " thread; with -maxrregcount or __launch_bounds__ alone, values that do not fit are spilled)",
    "shared_bytes": "bytes of shared memory per block",
    "threads": "threads per block",
}


def low_occupancy(case: Case) -> Iterator[Advice]:
    """Yields advice for a kernel of which an SM holds less than half of the warps that it could,
    if the grid has a block for each SM."""
    occupancy = case.occupancy
    if occupancy.fraction < LOW_OCCUPANCY and case.blocks >= case.spec.sms:
        steps = [_step(gain) for gain in gains(case.spec, occupancy.demand)]
        yield Advice(
            "low occupancy",
            None,
            f"{occupancy.active_warps} of {occupancy.max_warps} warps fit on an SM"
            f" ({100 * occupancy.fraction:.0f} %), limited by {' and '.join(occupancy.limiters)}",
            f"{'; or '.join(steps)}." if steps else "No smaller change helps.",
        )


def _step(gain: Gain) -> str:
    return (
        f"{gain.after:,} instead of {gain.before:,} {_CHANGES[gain.resource]} gives"
        f" {100 * gain.occupancy.fraction:.0f} %"
    )
