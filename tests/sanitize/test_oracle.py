"""The detector agrees with the slow definition of a race on random programs."""

from __future__ import annotations

from collections.abc import Sequence
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


ONE = "setp.eq.u32 %p, %tid, {thread}; setp.eq.and.u32 %p, %block, {block}, %p;"
PLAIN = ("@%p st.global.u32 [%base], %tid;", "@%p ld.global.u32 %r, [%base];")
SIGNALS = (
    *("@%p atom.{scope}.global.add.u32 %r, [%base+{flag}], 1;",) * 3,
    "@%p atom.{scope}.global.exch.b32 %r, [%base+{flag}], 1;",
    "@%p st.relaxed.{scope}.global.u32 [%base+{flag}], 1;",
    "@%p ld.relaxed.{scope}.global.u32 %r, [%base+{flag}];",
    "@%p ld.acquire.{scope}.global.u32 %r, [%base+{flag}];",
    "@%p st.release.{scope}.global.u32 [%base+{flag}], 1;",
)


def fenced_program(seed: int) -> str:
    """Returns the PTX of a random program of four threads, two in each block: plain accesses of one
    word, and signals and fences of both scopes that may order them."""
    draw = Random(seed)
    lines = [HEAD]
    for _ in range(draw.randint(10, 24)):
        scope, kind = draw.choice(("cta", "gpu", "gpu")), draw.random()
        thread, block = draw.choice((0, 33)), draw.randrange(BLOCKS)
        lines.append(ONE.format(thread=thread, block=block))
        if kind < 0.2:
            lines.append(draw.choice(PLAIN))
        elif kind < 0.6:
            flag = 4 * draw.choice((1, 1, 2))
            lines.append(draw.choice(SIGNALS).format(scope=scope, flag=flag))
        else:
            lines.append(f"@%p fence.{draw.choice(('acq_rel', 'sc'))}.{scope};")
    return "\n".join([*lines, "ret; }"])


WEAK_HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer) {{
  .shared .align 16 .b8 tile[1024];
  .reg .u64 %base, %at, %v0, %v1; .reg .u32 %tid, %block, %word; .reg .pred %p;
  ld.param.u64 %base, [buffer]; cvta.to.global.u64 %base, %base;
  {base}
  mov.u32 %tid, %tid.x; mov.u32 %block, %ctaid.x; mov.u64 %v0, 1; mov.u64 %v1, 2;
"""
WEAK_WHO = (*("setp.ge.u32 %p, %tid, 0;",) * 4, *WHO[1:7], "setp.gt.u32 %p, %tid, 4;")
FORMS = (("u8", 1), ("u16", 2), ("u32", 4), ("u32", 4), ("u64", 8), ("v2.u64", 16))
WEAK_SYNCHRONISE = ("bar.sync 0;", "bar.sync 0;", "bar.warp.sync 0xffffffff;")


def weak_program(seed: int) -> str:
    """Returns the PTX of a random program in which only barriers order threads: rows, columns and
    single elements of all sizes, rising or falling, most of them read, many of them often."""
    draw = Random(seed)
    space = draw.choice(("global", "shared"))
    lines = [WEAK_HEAD.format(base="mov.u64 %base, tile;" if space == "shared" else "")]
    writes = draw.choice((0.05, 0.2))
    for _ in range(draw.randint(6, 24)):
        if draw.random() < 0.15:
            lines.append(draw.choice(WEAK_SYNCHRONISE))
            continue
        form, size = draw.choice(FORMS)
        stride = size * draw.choice((0, 1, 1, 2, 3, 5) if size < 16 else (0, 1, 3))
        shift = draw.choice((0, 1, 2, 5, 8)) * size
        lines.append(draw.choice(WEAK_WHO))
        lines.append(f"mul.lo.u32 %word, %tid, {stride};")
        lines.append(f"@%p rem.u32 %word, %word, {draw.choice((64, 640))};")
        if draw.random() < 0.3:
            lines.append("@%p sub.u32 %word, 640, %word;")  # later lanes reach what lies before
        lines.append(f"cvt.u64.u32 %at, %word; add.u64 %at, %at, %base; add.u64 %at, %at, {shift};")
        what = "{%v0, %v1}" if "v2" in form else "%v0"
        store = draw.random() < writes
        lines.append(
            f"@%p st.{space}.{form} [%at], {what};"
            if store
            else f"@%p ld.{space}.{form} {what}, [%at];"
        )
    return "\n".join([*lines, "ret; }"])


CLUSTER_BLOCKS = 4
"""Two clusters of two blocks."""
CLUSTER_HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer) .explicitcluster .reqnctapercluster 2, 1, 1 {
  .shared .align 16 .b8 tile[16];
  .reg .u64 %base; .reg .u32 %near, %far, %rank, %tid, %block, %r; .reg .pred %p;
  ld.param.u64 %base, [buffer]; cvta.to.global.u64 %base, %base;
  mov.u32 %tid, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %rank, %cluster_ctarank;
  xor.b32 %rank, %rank, 1; mov.u32 %near, tile; mapa.shared::cluster.u32 %far, %near, %rank;
"""
CLUSTER_WHO = (
    "setp.lt.u32 %p, %tid, 1;",
    "setp.eq.u32 %p, %tid, 33;",
    *(ONE.format(thread=thread, block=block) for thread in (0, 33) for block in range(3)),
)
PLACES = (("global", "%base"), ("shared", "%near"), *(("shared::cluster", "%far"),) * 2)
CLUSTER_ACCESSES = (
    *("@%p st.{space}.u32 [{at}], %tid;", "@%p ld.{space}.u32 %r, [{at}];") * 3,
    "@%p st.relaxed.{scope}.{space}.u32 [{at}], %tid;",
    "@%p st.release.{scope}.{space}.u32 [{at}], %tid;",
    "@%p ld.relaxed.{scope}.{space}.u32 %r, [{at}];",
    "@%p ld.acquire.{scope}.{space}.u32 %r, [{at}];",
    "@%p atom.acq_rel.{scope}.{space}.add.u32 %r, [{at}], 1;",
)


def cluster_program(seed: int) -> str:
    """Returns the PTX of a random program of clusters: accesses to global memory, to shared memory
    and to that of the other block, and what orders them."""
    draw = Random(seed)
    lines, arrived = [CLUSTER_HEAD], False
    scopes = draw.choice((("cluster",), ("cta", "cluster", "cluster", "gpu")))
    for _ in range(draw.randint(5, 16)):
        scope, kind = draw.choice(scopes), draw.random()
        lines.append(draw.choice(CLUSTER_WHO))
        if kind < 0.6:
            space, at = draw.choice(PLACES)
            at += f"+{4 * draw.randrange(2)}"
            lines.append(draw.choice(CLUSTER_ACCESSES).format(scope=scope, space=space, at=at))
        elif kind < 0.75:
            lines.append(draw.choice(("bar.sync 0;", f"@%p fence.acq_rel.{scope};")))
        else:
            order = draw.choice((".release", ".release", ".relaxed"))
            lines.append(f"barrier.cluster.{'wait' if arrived else 'arrive' + order};")
            arrived = not arrived
    if arrived:
        lines.append("barrier.cluster.wait;")
    return "\n".join([*lines, "barrier.cluster.arrive;", "barrier.cluster.wait;", "ret; }"])


def verdicts(
    text: str, blocks: int, threads: int, seed: int, engine: str, interrupts: Sequence[int] = ()
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Returns the pairs of instructions that race, by the detector and by the oracle."""
    kernel = wl.Device("h100", engine="reference").compile(text, "ptx")["k"]
    checking = wl.Device("h100", engine=engine)
    oracle = Oracle(threads, 2 if blocks == CLUSTER_BLOCKS else 1)
    schedule = ("converge", "random", "fair", "adversarial")[seed % 4]
    options = {"schedule": schedule, "seed": seed, "interrupts": interrupts}
    checked = checking.compile(text, "ptx")["k"][blocks, threads].sanitized(
        ("race",), np.zeros(256, np.int32), **options
    )
    kernel[blocks, threads].watch(oracle, np.zeros(256, np.int32), **options)
    return checked.conflicts, oracle.races


def check(
    text: str, threads: int, seed: int, engine: str = "reference", interrupts: Sequence[int] = ()
) -> None:
    blocks = CLUSTER_BLOCKS if "cluster" in text else BLOCKS
    found, right = verdicts(text, blocks, threads, seed, engine, interrupts)
    assert bool(found) == bool(right), f"seed {seed}: {found}, {right}\n{text}"
    assert found <= right, f"seed {seed}: {found - right} are no races\n{text}"


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_detector_and_oracle_agree(first: int) -> None:
    for seed in range(first, first + 10):
        check(program(seed), THREADS, seed)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(10, 520, 10))]
)
def test_detector_and_oracle_agree_on_signals_and_fences(first: int) -> None:
    """Warps are interrupted before half of the instructions, so that signals go to and fro."""
    for seed in range(first, first + 10):
        text = fenced_program(seed)
        places = range(7, 7 + 3 * text.count("@%p"))
        interrupts = tuple(place for place in places if Random(seed + place).random() < 0.5)
        check(text, THREADS, seed, interrupts=interrupts)


@pytest.mark.parametrize("seed", range(6))
def test_detector_and_oracle_agree_where_only_barriers_order(seed: int) -> None:
    check(weak_program(seed), 3 * 32, seed)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 100, 4))]
)
def test_compiled_code_and_oracle_agree(first: int) -> None:
    for seed in range(first, first + 4):
        check(weak_program(seed), 3 * 32, seed, "compiled")


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(20, 2120, 100))
def test_detector_and_oracle_agree_on_many(first: int) -> None:
    for seed in range(first, first + 100):
        check(program(seed), THREADS, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(20, 1020, 100))
def test_detector_and_oracle_agree_on_many_with_barriers(first: int) -> None:
    for seed in range(first, first + 100):
        check(weak_program(seed), 3 * 32, seed)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(5, 520, 5))]
)
def test_detector_and_oracle_agree_on_clusters(first: int) -> None:
    """Warps are interrupted before half of the instructions."""
    for seed in range(first, first + 5):
        text = cluster_program(seed)
        places = range(9, 9 + 3 * text.count("@%p"))
        interrupts = tuple(place for place in places if Random(seed + place).random() < 0.5)
        check(text, THREADS, seed, interrupts=interrupts)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 100, 4))]
)
def test_compiled_code_and_oracle_agree_on_clusters(first: int) -> None:
    for seed in range(first, first + 4):
        check(cluster_program(seed), THREADS, seed, "compiled")
