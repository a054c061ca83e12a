"""`st.async` and `red.async` into the block's own shared memory: the value, and what the mbarrier
hears of it; on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
LANES = 32


def run(
    body: str, engine: str, words: int = 4, schedule: str = "converge"
) -> tuple[np.ndarray, wl.Run]:
    """Lane t has `words` words of shared memory at %own, and its number in %t. The mbarrier expects
    one arrival, that of lane 0. Gives all words of all lanes, then for lane 0 whether the phase was
    complete before its last bytes were expected, and after."""
    text = f"""
.version 9.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 results)
{{
    .reg .pred %p<4>; .reg .b32 %t, %at, %bar, %own, %i, %r<8>; .reg .f32 %f; .reg .b64 %d<4>, %out;
    .shared .align 16 .b8 data[1024];
    .shared .align 8 .b64 barrier;
    mov.u32 %t, %tid.x;
    mov.u32 %at, data;
    mov.u32 %bar, barrier;
    mad.lo.u32 %own, %t, {4 * words}, %at;
    mov.u32 %r0, 100;
    {"".join(f"st.shared.u32 [%own+{4 * i}], %r0;" for i in range(words))}
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [%bar], 1;
    bar.sync 0;
    {body}
    bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p1, [%bar], 0;
    @%p0 mbarrier.complete_tx.relaxed.cluster.shared.b64 [%bar], 8;
    bar.sync 0;
    mbarrier.test_wait.parity.shared.b64 %p2, [%bar], 0;
    ld.param.u64 %out, [results];
    mad.wide.u32 %out, %t, {4 * words + 8}, %out;
    {"".join(f"ld.shared.u32 %r1, [%own+{4 * i}]; st.global.u32 [%out+{4 * i}], %r1;" for i in range(words))}
    selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out+{4 * words}], %r1;
    selp.u32 %r1, 1, 0, %p2; st.global.u32 [%out+{4 * words + 4}], %r1;
    ret;
}}
"""  # noqa: E501
    out = np.zeros((LANES, words + 2), np.uint32)
    gpu = wl.Device("h100", engine=engine, schedule=schedule)
    made = gpu.compile(text, "ptx")["k"][1, LANES](out)
    return out, made


def expects(expected_bytes: int) -> str:
    """The arrival of lane 0, which expects those bytes and the last eight."""
    return f"@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], {expected_bytes + 8}; bar.sync 0;"


ASYNC = "shared::cluster.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("form", "bytes_each"), [("b32", 4), ("v2.u32", 8), ("v4.s32", 16)])
def test_asynchronous_stores(form: str, bytes_each: int, engine: str) -> None:
    count = bytes_each // 4
    values = "add.u32 %r1, %t, 1; add.u32 %r2, %t, 2; add.u32 %r3, %t, 3; add.u32 %r4, %t, 4;"
    named = ", ".join(f"%r{i + 1}" for i in range(count))
    body = f"""{values} {expects(LANES * bytes_each)}
    st.async.weak.{ASYNC}.{form} [%own], {f"{{{named}}}" if count > 1 else named}, [%bar];"""
    out, _ = run(body, engine)
    for i in range(4):
        wanted = np.arange(LANES) + 1 + i if i < count else np.full(LANES, 100)
        assert np.array_equal(out[:, i], wanted)
    assert not out[:, 4].any()  # eight bytes were still to come
    assert out[:, 5].all()


REDUCTIONS = {
    "add.u32": lambda t: 100 + t,
    "min.s32": lambda t: np.minimum(100, t),
    "max.u32": lambda t: np.maximum(100, t),
    "and.b32": lambda t: 100 & t,
    "or.b32": lambda t: 100 | t,
    "xor.b32": lambda t: 100 ^ t,
    "inc.u32": lambda t: np.where(t <= 100, 0, 101),
    "dec.u32": lambda t: np.where(t < 100, t, 99),
}


@pytest.mark.parametrize("schedule", ["converge", "adversarial"])
@pytest.mark.parametrize("engine", ENGINES)
def test_asynchronous_reductions(engine: str, schedule: str) -> None:
    """Each operation on a word of its own, with 7 times the number of the lane; also where they
    complete late."""
    reductions = "".join(
        f"red.async.relaxed.cluster.{ASYNC}.{form} [%own+{4 * i}], %r1, [%bar];\n"
        for i, form in enumerate(REDUCTIONS)
    )
    words = len(REDUCTIONS)
    body = f"mul.lo.u32 %r1, %t, 7; {expects(4 * words * LANES)} {reductions}"
    out, _ = run(body, engine, words, schedule)
    for word, (form, wanted) in zip(out.T, REDUCTIONS.items(), strict=False):
        assert np.array_equal(word, wanted(7 * np.arange(LANES))), form
    assert out[0, words] == 0
    assert out[:, words + 1].all()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_asynchronous_sum_of_all_lanes(engine: str) -> None:
    body = f"""cvt.u64.u32 %d0, %t; {expects(8 * LANES)}
    red.async.relaxed.cluster.{ASYNC}.add.u64 [%at], %d0, [%bar];"""
    out, _ = run(body, engine)
    first = int(out[0, 0]) | int(out[0, 1]) << 32
    assert first == (100 | 100 << 32) + LANES * (LANES - 1) // 2
    assert not out[:, 4].any()
    assert out[:, 5].all()


@pytest.mark.parametrize(
    "access",
    [
        f"st.async.{ASYNC}.b64 [%own], %d0, [%bar]",
        f"red.async.relaxed.cluster.{ASYNC}.add.u64 [%at], %d0, [%bar]",
    ],
)
def test_both_engines_count_the_same(access: str) -> None:
    body = f"cvt.u64.u32 %d0, %t; {expects(8 * LANES)} {access};"
    one, other = (run(body, engine)[1] for engine in ENGINES)
    assert one.counters == other.counters
