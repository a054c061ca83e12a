"""The detector agrees with the slow definition of a race on random programs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from oracle import Oracle

import warploom as wl

BLOCKS, THREADS, WORDS = 2, 40, 4
HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer) {
  .reg .u64 %base, %at; .reg .u32 %tid, %block, %r, %word; .reg .pred %p, %q;
  ld.param.u64 %base, [buffer]; cvta.to.global.u64 %base, %base;
  mov.u32 %tid, %tid.x; mov.u32 %block, %ctaid.x;
"""
WHO = (
    "setp.ge.u32 %p, %tid, 0;",
    "setp.lt.u32 %p, %tid, 1;",
    "setp.eq.u32 %p, %tid, 33;",
    "setp.lt.u32 %p, %tid, 16;",
    "setp.lt.u32 %p, %tid, 32;",
    "setp.eq.u32 %p, %block, 0;",
    "setp.eq.u32 %p, %block, 1;",
    "setp.lt.u32 %p, %tid, 1; setp.eq.and.u32 %p, %block, 0, %p;",
    "setp.eq.u32 %p, %tid, 33; setp.eq.and.u32 %p, %block, 1, %p;",
    "setp.eq.u32 %p, %tid, 2; setp.eq.and.u32 %p, %block, 1, %p;",
)
SINGLE = 7
"""From here on they are single threads."""
ACCESSES = (
    *("@%p st.global.u32 [%at], %tid;", "@%p ld.global.u32 %r, [%at];") * 3,
    "@%p st.relaxed.{scope}.global.u32 [%at], %tid;",
    "@%p st.release.{scope}.global.u32 [%at], %tid;",
    "@%p ld.relaxed.{scope}.global.u32 %r, [%at];",
    "@%p ld.acquire.{scope}.global.u32 %r, [%at];",
    "@%p red.{scope}.global.add.u32 [%at], 1;",
    "@%p atom.acq_rel.{scope}.global.add.u32 %r, [%at], 1;",
    "@%p atom.{scope}.global.add.u32 %r, [%at], 1;",
)
SYNCHRONISE = (
    "bar.sync 0;",
    "bar.warp.sync 0xffffffff;",
    "@%p fence.acq_rel.{scope};",
    "@%p fence.acq_rel.gpu;",
)
PARTLY = (
    "setp.lt.u32 %p, %tid, 32; @%p bar.sync 1, 32;",
    "setp.lt.u32 %p, %tid, 8; @!%p bra L{n}; bar.warp.sync 0xff; L{n}:",
)


def program(seed: int) -> str:
    """Returns the PTX of a random program: accesses of few words by some threads, and what orders
    them."""
    draw = Random(seed)
    lines = [HEAD]
    few = draw.random() < 0.7  # threads, so that not every program races
    who = WHO[SINGLE:] if few else WHO
    for number in range(draw.randint(4, 12)):
        scope = draw.choice(("cta", "gpu", "gpu"))
        kind = draw.random()
        if kind < 0.65:
            spread = draw.choice((0, 0, 1)) * (not few)
            lines.append(draw.choice(who))
            lines.append(f"mul.lo.u32 %word, %tid, {4 * spread};")
            lines.append("cvt.u64.u32 %at, %word; add.u64 %at, %at, %base;")
            lines.append(f"add.u64 %at, %at, {4 * draw.randrange(WORDS)};")
            lines.append(draw.choice(ACCESSES).format(scope=scope))
        elif kind < 0.9:
            lines.append(draw.choice((WHO[0], *who)))
            lines.append(draw.choice(SYNCHRONISE).format(scope=scope))
        else:
            lines.append(draw.choice(PARTLY).format(n=number))
    return "\n".join([*lines, "ret; }"])


def verdicts(seed: int) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Returns the pairs of instructions that race, by the detector and by the oracle."""
    gpu = wl.Device("h100", engine="reference")
    kernel = gpu.compile(program(seed), "ptx")["k"]
    buffer = gpu.zeros(THREADS + WORDS, np.int32)
    launcher = kernel[BLOCKS, THREADS]
    oracle = Oracle(THREADS)
    schedule = ("converge", "random", "fair", "adversarial")[seed % 4]
    checked = launcher.sanitized(("race",), buffer, schedule=schedule, seed=seed)
    launcher.watch(oracle, buffer, schedule=schedule, seed=seed)
    return checked.conflicts, oracle.races


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_detector_and_oracle_agree(first: int) -> None:
    for seed in range(first, first + 10):
        found, right = verdicts(seed)
        assert bool(found) == bool(right), f"seed {seed}: {found}, {right}\n{program(seed)}"
        assert found <= right, f"seed {seed}: {found - right} are no races\n{program(seed)}"


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(20, 2120, 100))
def test_detector_and_oracle_agree_on_many(first: int) -> None:
    for seed in range(first, first + 100):
        found, right = verdicts(seed)
        assert bool(found) == bool(right), f"seed {seed}: {found}, {right}\n{program(seed)}"
        assert found <= right, f"seed {seed}: {found - right} are no races\n{program(seed)}"
