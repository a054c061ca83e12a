"""Advice about the last wave of blocks, which may leave most SMs without work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warploom.devices.occupancy import occupancy_of
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.latency import busy_cycles, warp_cycles

LEAST_IDLE = 0.2
"""The share of the time that the waves of blocks lose, from which on that is reported."""

LEAST_GAIN = 0.1
"""A change of the launch that saves a smaller share of the time is not advised."""

NEAR_BEST = 1.05
"""Among the changes that take so many times as long as the best one, the simplest is advised."""

FEW_ELEMENTS = (1, 2, 3, 4)
BLOCK_SIZES = (64, 128, 192, 256, 384, 512, 768, 1024)
"""Sizes that are tried, up to that of the launch: larger blocks are harder to spread."""


@dataclass(frozen=True, slots=True)
class Waves:
    """A launch of the same elements with `threads` per block and `elements` per thread: its blocks,
    those of the SM that has most, how many an SM holds at once, and the modelled cycles."""

    threads: int
    elements: int
    blocks: int
    busiest: int
    held: int
    cycles: float


@dataclass(frozen=True, slots=True)
class WaveModel:
    """Models the time of waves of equally long blocks: `alone` are the cycles of a warp if it never
    waits for another one, `each` those for which a warp keeps its SM busy."""

    case: Case
    alone: float
    each: float

    def of(self, threads: int, elements: int) -> Waves | None:
        """Returns the launch with other blocks; None if an SM cannot hold such a block. Each wave
        of an SM takes as long as its warps keep it busy, or as one of them takes alone."""
        case, sms = self.case, self.case.spec.sms
        total = case.blocks * case.threads_per_block
        blocks = -(-total // (threads * elements))
        demand = replace(case.occupancy.demand, threads=threads)
        held = occupancy_of(case.spec, demand).active_blocks
        if not held:
            return None
        busiest = -(-blocks // sms)
        warps = -(-threads // case.spec.warp_size)
        waves = [held] * (busiest // held) + ([busiest % held] if busiest % held else [])
        cycles = sum(max(count * warps * self.each, self.alone) * elements for count in waves)
        return Waves(threads, elements, blocks, busiest, held, cycles)


def tail_effect(case: Case) -> Iterator[Advice]:
    """Yields advice for a grid whose last wave leaves a large part of the device without work, if
    all blocks take about as long; with the blocks that would take less time, by a calculation."""
    alone, busy = warp_cycles(case), busy_cycles(case)
    if not case.occupancy.active_blocks or alone is None or busy is None or case.work is None:
        return
    model = WaveModel(case, alone, busy * case.spec.sms / max(1, case.warps))
    now = model.of(case.threads_per_block, 1)
    if now is None or case.blocks <= case.spec.sms or not now.cycles:
        return
    least = max(busy, alone)
    if 1 - least / now.cycles < LEAST_IDLE:
        return
    best = _best(model, now)
    yield Advice(
        "tail effect",
        None,
        f"{_spread(case, now)}; if all blocks take the same time, "
        f"{100 * (1 - least / now.cycles):.0f} % of the time is lost",
        _remedy(now, best),
        saves=_saved(case, now, best or now),
    )


def _spread(case: Case, now: Waves) -> str:
    """Returns how the blocks of a launch are spread over waves, or over SMs if all fit at once."""
    sms, at_once = case.spec.sms, now.held * case.spec.sms
    waves = -(-now.blocks // at_once)
    if waves == 1:
        more = now.blocks % sms
        return (
            f"{now.blocks:,} blocks for {sms} SMs: {more} SM{'s have' if more > 1 else ' has'} "
            f"{now.busiest} of them, and each of the other SMs has {now.blocks // sms}"
        )
    return (
        f"{now.blocks:,} blocks run in {waves} waves of {at_once:,} ({sms} SMs, {now.held} "
        f"block{'s'[: now.held > 1]} each), and the last has only "
        f"{now.blocks - (waves - 1) * at_once:,}"
    )


def _best(model: WaveModel, now: Waves) -> Waves | None:
    """Returns the blocks that take least time, or simpler ones that take hardly more; None if none
    takes clearly less than the launch does."""
    sizes = [size for size in BLOCK_SIZES if size <= now.threads]
    tried = [model.of(size, elements) for elements in FEW_ELEMENTS for size in sizes]
    found = [one for one in tried if one is not None]
    least = min((one.cycles for one in found), default=now.cycles)
    if least > (1 - LEAST_GAIN) * now.cycles:
        return None
    near = [one for one in found if one.cycles <= NEAR_BEST * least]
    return min(near, key=lambda one: (one.elements, -one.threads))


def _remedy(now: Waves, best: Waves | None) -> str:
    """Returns the launch to try instead."""
    if best is None:
        return (
            "By this calculation, neither another block size nor a loop over up to 4 elements "
            "per thread helps. Only a larger grid reduces the share of lost time."
        )
    spread = f"{best.blocks:,} blocks, at most {best.busiest} on an SM"
    if best.elements == 1:
        return (
            f"Use blocks of {best.threads} threads: {spread}, whereas an SM now has up to "
            f"{now.busiest} blocks of {now.threads} threads."
        )
    waves = ", all in one wave" if best.busiest <= best.held else ""
    return (
        f"Use blocks of {best.threads} threads, and process {best.elements} elements per thread: "
        f"{spread}{waves}."
    )


def _saved(case: Case, now: Waves, then: Waves) -> dict[str, float]:
    """Returns the SMs that are idle less, if the waves become those of another launch."""
    if case.work is None:
        return {}
    busy = case.work.sms - case.work.idle_sms
    return {"idle_sms": min(case.work.idle_sms, busy * (now.cycles / then.cycles - 1))}
