"""Advice about the shape of a launch: blocks that leave lanes, SMs or places for warps without
work."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.core.errors import Dim3
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.latency import latency_gain, latency_saved

FULL_ENOUGH = 0.75
"""The share of the blocks that a device holds at once from which on a grid is not called small."""

FEW_THREADS = 128
"""The threads of a block from which on warps, not blocks, limit an SM on every device."""

LOW_OCCUPANCY = 0.5

LOOPED = 4
"""A kernel with an instruction that warps execute so often, on average, is taken to loop."""


def partial_warps(case: Case) -> Iterator[Advice]:
    """Yields advice for a block size that is no multiple of the warp size, which leaves lanes of
    its last warp without a thread."""
    size, warp = case.threads_per_block, case.spec.warp_size
    warps = -(-size // warp)
    lost = warps * warp - size
    if lost:
        smaller = f", or {(warps - 1) * warp}" if warps > 1 else ""
        work, share = case.work, lost / (warps * warp)
        fields = ("issued", "double", "special", "wavefronts", "constant_passes", "latency")
        yield Advice(
            "partial warps",
            None,
            f"a block of {size} threads leaves {lost} lanes of its {warps} warps unused: "
            f"{100 * share:.1f} % of all lanes are never active",
            f"Make the block size a multiple of {warp}: {warps * warp}{smaller}"
            f"{_longer_axis(case.block, warp)}.",
            case.total_cost * lost // (warps * warp),
            saves={} if work is None else {name: share * getattr(work, name) for name in fields},
        )


def _longer_axis(block: Dim3, warp: int) -> str:
    """Returns a hint for a block of one thread along x whose work is along another axis."""
    axis = "xyz"[block.index(max(block))]
    is_upright = block[0] == 1 and max(block) > 1
    return (
        f"; extend the block along threadIdx.x ({warp} threads wide), not along threadIdx.{axis}"
        if is_upright
        else ""
    )


def small_blocks(case: Case) -> Iterator[Advice]:
    """Yields advice for blocks so small that their number limits an SM to half of its warps."""
    occupancy = case.occupancy
    if "blocks" not in occupancy.limiters or occupancy.fraction > LOW_OCCUPANCY:
        return
    size = -(-FEW_THREADS // case.threads_per_block) * case.threads_per_block
    blocks = -(-case.blocks * case.threads_per_block // size)
    gained = latency_gain(case, occupancy.max_warps)
    cost = (
        ""
        if gained is None or gained > 0
        else "; according to the model, these warps already hide the latencies"
    )
    yield Advice(
        "small blocks",
        None,
        f"{case.threads_per_block} threads per block; an SM holds at most "
        f"{case.spec.max_blocks_per_sm} blocks, which fill only {occupancy.active_warps} of its "
        f"{occupancy.max_warps} warp slots{cost}",
        f"Use blocks of {FEW_THREADS} to 256 threads to fill the SMs: for example, {blocks:,} "
        f"blocks of {size} threads, not {case.blocks:,} blocks of {case.threads_per_block}.",
        saves={} if cost else latency_saved(case, occupancy.max_warps),
        is_minor=bool(cost),
    )


def small_grid(case: Case) -> Iterator[Advice]:
    """Yields advice for a grid that leaves a part of the device's block slots empty: a large part
    of the time if SMs have no block at all, else little."""
    holds, blocks, sms = case.spec.sms * case.occupancy.active_blocks, case.blocks, case.spec.sms
    if blocks >= FULL_ENOUGH * holds:
        return
    number = f"{blocks:,} block{'s'[: blocks > 1]}"
    if blocks >= sms:
        yield Advice(
            "small grid",
            None,
            f"{number}, but the {sms} SMs can hold {holds:,} at once",
            "",
            is_minor=True,
        )
        return
    yield Advice(
        "small grid",
        None,
        f"{number} for {sms} SMs, which can hold {holds:,} such blocks at once: {sms - blocks} "
        "SMs have no work",
        _more_blocks(case),
        saves={} if case.work is None else {"idle_sms": case.work.idle_sms},
    )


def _more_blocks(case: Case) -> str:
    """Returns how a launch could have a block for each SM."""
    sms, warp = case.spec.sms, case.spec.warp_size
    looped = max(case.counters.executions, default=0) >= LOOPED * case.warps
    smaller = case.blocks * case.threads_per_block // sms // warp * warp
    if looped:
        return (
            f"Divide the work among at least {sms} blocks: a loop over elements can start at "
            "blockIdx.x * blockDim.x + threadIdx.x and step by gridDim.x * blockDim.x."
        )
    if smaller:
        return (
            f"Use blocks of {smaller} threads, so that each SM has a block. More elements per "
            "launch, or several kernels at once, would keep the SMs busier."
        )
    return (
        "The launch has too few elements for this GPU: process more elements per launch, or run "
        "several kernels at once."
    )
