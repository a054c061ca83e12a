"""Wide and asynchronous moves, hints and the less common atomics, on both engines."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import warploom as wl
from warploom.core.errors import PtxSyntaxError

ENGINES = ("reference", "compiled")
HEAD = """.version 9.0\n.target sm_100\n.address_size 64
.visible .entry k(.param .u64 first, .param .u64 second) {
.reg .pred %p<4>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b128 %q<4>;
.reg .b64 %a, %b; .reg .b32 %t;
.shared .align 32 .b8 s[2048];
.local .align 16 .b8 own[32];
mov.u32 %t, %tid.x;
ld.param.u64 %a, [first]; ld.param.u64 %b, [second];
"""


def run(body: str, *arrays: npt.NDArray, engine: str, threads: int = 32) -> wl.Run:
    kernel = wl.Device(cc="10.0", engine=engine).compile(f"{HEAD}{body}\nret;\n}}", "ptx")["k"]
    return kernel[1, threads](*arrays)


@pytest.mark.parametrize("engine", ENGINES)
def test_eight_words_and_128_bits_move_through_every_space(engine: str) -> None:
    body = """mul.wide.u32 %d0, %t, 32; add.u64 %a, %a, %d0; add.u64 %b, %b, %d0;
    cvt.u32.u64 %r8, %d0; mov.u32 %r9, s; add.u32 %r8, %r8, %r9;
    ld.global.L1::evict_last.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%a];
    st.shared.v4.b32 [%r8], {%r4, %r5, %r6, %r7};
    st.shared.v4.b32 [%r8+16], {%r0, %r1, %r2, %r3};
    ld.shared.b128 %q0, [%r8]; ld.shared.b128 %q1, [%r8+16];
    st.local.b128 [own], %q0; st.local.b128 [own+16], %q1;
    ld.local.v4.b32 {%r0, %r1, %r2, %r3}, [own]; ld.local.b128 %q2, [own+16];
    st.global.v4.b32 [%b], {%r3, %r2, %r1, %r0}; st.global.b128 [%b+16], %q2;"""
    first = np.arange(256, dtype=np.uint32)
    second = np.zeros_like(first)
    run(body, first, second, engine=engine)
    words = first.reshape(32, 8)
    expected = np.concatenate([words[:, :3:-1], words[:, :4]], axis=1)
    assert np.array_equal(second.reshape(32, 8), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_128_bits_are_packed_copied_and_unpacked(engine: str) -> None:
    """The first part is the lowest (PTX ISA, mov). Odd lanes keep what they had."""
    body = """mul.wide.u32 %d0, %t, 16; add.u64 %a, %a, %d0; add.u64 %b, %b, %d0;
    and.b32 %r0, %t, 1; setp.eq.u32 %p0, %r0, 0;
    ld.global.b128 %q0, [%a]; mov.b128 {%d1, %d2}, %q0;
    mov.b128 %q1, {%d1, %d1}; @%p0 mov.b128 %q1, {%d2, %d1}; mov.b128 %q2, %q1;
    st.global.b128 [%b], %q2;"""
    first = np.arange(64, dtype=np.uint64) << np.uint64(33)
    second = np.zeros_like(first)
    run(body, first, second, engine=engine)
    low, high = first[0::2], first[1::2]
    even = np.arange(32) % 2 == 0
    assert np.array_equal(second[0::2], np.where(even, high, low))
    assert np.array_equal(second[1::2], low)


@pytest.mark.parametrize("engine", ENGINES)
def test_vectors_move_as_a_whole_and_by_their_parts(engine: str) -> None:
    """All elements are read before one is written; .r .g .b .a are .x .y .z .w (PTX ISA, "Vectors
    as Operands"). Odd lanes keep what they had."""
    body = """.reg .v4 .f32 V, W; .reg .v2 .u32 U;
    mul.wide.u32 %d0, %t, 32; add.u64 %b, %b, %d0;
    mul.wide.u32 %d0, %t, 16; add.u64 %a, %a, %d0;
    and.b32 %r0, %t, 1; setp.eq.u32 %p0, %r0, 0;
    ld.global.v4.f32 V, [%a]; mov.v4.f32 W, V;
    @%p0 mov.v4.f32 {W.x, W.y, W.b, W.a}, {V.w, V.b, V.y, 1.5};
    mov.v2.u32 U, {%t, 7}; mov.v2.b32 {%r1, %r2}, U; mov.v2.b32 {%r1, %r2}, {%r2, %r1};
    st.global.v4.f32 [%b], W; st.global.v2.u32 [%b+16], {%r1, %r2};"""
    first = np.arange(128, dtype=np.float32).reshape(32, 4)
    second = np.zeros((32, 8), np.float32)
    run(body, first, second, engine=engine)
    turned = np.column_stack([first[:, 3], first[:, 2], first[:, 1], np.full(32, 1.5)])
    even = np.arange(32)[:, None] % 2 == 0
    assert np.array_equal(second[:, :4], np.where(even, turned, first))
    words = second[:, 4:6].view(np.uint32)
    assert words.tolist() == [[7, lane] for lane in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_decimal_literals_are_numbers_of_the_type_that_moves(engine: str) -> None:
    """1.5 is 0x3FC00000 as .f32, whatever it is in double precision (PTX ISA, "Floating-Point
    Constants")."""
    body = """setp.eq.u32 %p0, %t, 0; @!%p0 bra DONE;
    st.global.f32 [%b], 1.5; st.global.v2.f32 [%b+8], {2.5, -0.75};
    atom.global.add.f32 %r0, [%b], 0.25; red.global.add.f32 [%b+8], 1e1;
    atom.global.v2.f32.add {%r0, %r1}, [%b+16], {0.5, 3.0};
    st.shared.f64 [s], 0.1; ld.shared.f64 %d0, [s]; st.global.f64 [%b+24], %d0;
    st.local.f32 [own], 7.0; ld.local.b32 %r2, [own]; st.global.b32 [%b+32], %r2;
    DONE:"""
    out = np.zeros(10, np.float32)
    run(body, np.zeros(1), out, engine=engine)
    assert out[:6].tolist() == [1.75, 0, 12.5, -0.75, 0.5, 3.0]
    assert out[6:8].view(np.float64)[0] == 0.1
    assert out[8] == 7.0


INT128 = """
extern "C" __global__ void k(unsigned __int128* p, unsigned __int128* q) {
    unsigned __int128 before = atomicExch(p, *q);
    q[1] = before;
    q[2] = atomicCAS(p, *q, before * 3);
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_atomics_of_128_bits_as_nvrtc_compiles_them(engine: str) -> None:
    old, new = (7 << 100) + 5, (1 << 127) + 3
    words = [n.to_bytes(16, "little") for n in (old, new)]
    p = np.frombuffer(words[0], np.uint64).copy()
    q = np.frombuffer(words[1] + bytes(32), np.uint64).copy()
    module = wl.Device("h100", engine=engine).compile(INT128, options=["--device-int128"])
    module["k"][1, 1](p, q)
    assert p.tobytes() == (old * 3 % (1 << 128)).to_bytes(16, "little")
    assert q.tobytes() == words[1] + words[0] + words[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_asynchronous_copies_fill_with_zeros(engine: str) -> None:
    """Lanes take 16, 0 or lane bytes; the source ends where no lane may read on."""
    body = """mul.wide.u32 %d0, %t, 16; add.u64 %a, %a, %d0; add.u64 %b, %b, %d0;
    shl.b32 %r0, %t, 4; mov.u32 %r1, s; add.u32 %r0, %r0, %r1;
    setp.lt.u32 %p0, %t, 16; selp.b32 %r2, 16, 0, %p0; setp.lt.u32 %p1, %t, 8;
    selp.b32 %r2, %t, %r2, %p1;
    cp.async.cg.shared.global.L2::128B [%r0], [%a], 16, %r2;
    cp.async.ca.shared::cta.global [%r0+512], [%a], 4, !%p0;
    cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
    ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0]; ld.shared.b32 %r8, [%r0+512];
    st.global.v4.b32 [%b], {%r4, %r5, %r6, %r7}; st.global.b32 [%b+512], %r8;"""
    body = body.replace("!%p0", "%p2").replace("cp.async.cg", "not.pred %p2, %p0;\ncp.async.cg", 1)
    first = np.arange(1, 257, dtype=np.uint8)  # lanes from 16 on point beyond it
    second = np.zeros(1024, np.uint8)
    run(body, first, second, engine=engine)
    counts = [lane if lane < 8 else 16 if lane < 16 else 0 for lane in range(32)]
    for lane, count in enumerate(counts):
        expected = np.zeros(16, np.uint8)
        expected[:count] = first[16 * lane : 16 * lane + count]
        assert np.array_equal(second[16 * lane : 16 * lane + 16], expected), lane
    for lane in range(32):
        word = second[512 + 16 * lane : 512 + 16 * lane + 4]
        assert np.array_equal(word, first[16 * lane : 16 * lane + 4] if lane < 16 else [0] * 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy_counts_as_a_load_and_a_store(engine: str) -> None:
    body = """mul.wide.u32 %d0, %t, 16; add.u64 %a, %a, %d0; mov.u32 %r0, s;
    shl.b32 %r1, %t, 4; add.u32 %r0, %r0, %r1;
    cp.async.ca.shared.global [%r0], [%a], 16;"""
    made = run(body, np.zeros(128, np.uint32), np.zeros(1, np.uint32), engine=engine)
    # 32 lanes of 16 bytes are 512 bytes: 16 sectors, and 4 wavefronts of 128 bytes.
    assert made.counters.global_load_requests == 1
    assert made.counters.global_load_sectors == 16
    assert made.counters.shared_store_wavefronts == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_hints_change_nothing_and_windows_are_distinguished(engine: str) -> None:
    body = """createpolicy.fractional.L2::evict_last.b64 %d0, 1.0;
    prefetch.global.L2 [%a]; prefetch.global.L2::evict_last [%a]; prefetchu.L1 [%a];
    applypriority.global.L2::evict_normal [%a], 128; fence.proxy.async;
    cp.async.bulk.prefetch.L2.global [%a], 64;
    cp.async.bulk.prefetch.L2.global.L2::cache_hint [%a+16], 48, %d0;
    fence.acq_rel.gpu; membar.gl; griddepcontrol.wait; pmevent 1; brkpt;
    setmaxnreg.dec.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 232;
    ld.global.L2::cache_hint.b32 %r0, [%a], %d0;
    cvta.shared.u64 %d1, s; cvta.local.u64 %d2, own;
    isspacep.shared %p0, %d1; isspacep.local %p1, %d1; isspacep.global %p2, %a;
    selp.b32 %r1, 1, 0, %p0; selp.b32 %r2, 2, 0, %p1; selp.b32 %r3, 4, 0, %p2;
    isspacep.local %p0, %d2; isspacep.global %p1, %d2; isspacep.shared::cta %p2, %a;
    selp.b32 %r4, 8, 0, %p0; selp.b32 %r5, 16, 0, %p1; selp.b32 %r6, 32, 0, %p2;
    add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; add.u32 %r0, %r0, %r3;
    add.u32 %r0, %r0, %r4; add.u32 %r0, %r0, %r5; add.u32 %r0, %r0, %r6;
    st.global.b32 [%b], %r0;"""
    second = np.zeros(1, np.uint32)
    run(body, np.full(32, 100, np.uint32), second, engine=engine, threads=1)
    assert second[0] == 100 + 1 + 4 + 8


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("form", "dtype", "parts"),
    [
        ("add.noftz.f16", np.float16, 1),
        ("add.noftz.bf16", ml_dtypes.bfloat16, 1),
        ("add.noftz.f16x2", np.float16, 2),
        ("add.noftz.v8.bf16", ml_dtypes.bfloat16, 8),
        ("max.noftz.v4.f16", np.float16, 4),
        ("min.noftz.v2.bf16x2", ml_dtypes.bfloat16, 4),
        ("add.v2.f32", np.float32, 2),
        ("add.v4.f32", np.float32, 4),
    ],
)
def test_atomics_of_halves_and_vectors(
    form: str, dtype: npt.DTypeLike, parts: int, engine: str
) -> None:
    """Four lanes on each place: small integers, so that no sum depends on their order."""
    size = parts * np.dtype(dtype).itemsize
    kind = form.rpartition(".")[2]
    count = int(form.partition(".v")[2][:1] or 1)
    register, bits = ("%h", 16) if kind in ("f16", "bf16") else ("%r", 32)
    names = [f"{register}{i}" for i in range(count)]
    vector = f".v{count}" if count > 1 else ""
    braced = "{" + ", ".join(names) + "}" if count > 1 else names[0]
    olds = "{" + ", ".join(["_"] * count) + "}" if count > 1 else f"{register}15"
    body = f"""and.b32 %r14, %t, 7; mul.wide.u32 %d0, %r14, {size}; add.u64 %b, %b, %d0;
    mul.wide.u32 %d0, %t, {size}; add.u64 %a, %a, %d0;
    ld.global{vector}.b{bits} {braced}, [%a];
    setp.lt.u32 %p0, %t, 16;
    @%p0 atom.global.{form} {olds}, [%b], {braced};
    @!%p0 red.relaxed.gpu.global.{form} [%b], {braced};"""
    first = (np.arange(32 * parts) % 13 - 6).astype(dtype).reshape(32, parts)
    second = np.ones((8, parts), dtype)
    run(body, first, second, engine=engine)
    wide = first.astype(np.float64).reshape(4, 8, parts)
    expected = {"add": wide.sum(0) + 1, "max": wide.max(0), "min": wide.min(0)}[form[:3]]
    if form[:3] == "max":
        expected = np.maximum(expected, 1)
    if form[:3] == "min":
        expected = np.minimum(expected, 1)
    assert np.array_equal(second.astype(np.float64), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_exchanges_of_128_bits(engine: str) -> None:
    body = """ld.global.b128 %q0, [%a]; ld.global.b128 %q1, [%a+16];
    atom.global.cas.b128 %q2, [%b], %q0, %q1; st.global.b128 [%b+16], %q2;
    atom.global.cas.b128 %q2, [%b], %q0, %q0; atom.global.exch.b128 %q3, [%b+32], %q2;
    st.global.b128 [%b+48], %q3;"""
    first = np.array([1, 2, 3, 4], np.uint64)
    second = np.array([1, 2, 0, 0, 7, 8, 0, 0], np.uint64)
    run(body, first, second, engine=engine, threads=1)
    assert second.tolist() == [3, 4, 1, 2, 3, 4, 7, 8]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_32_bit_address_wraps(engine: str) -> None:
    """`[%r+128]` where the register is 128 below the start of shared memory."""
    body = """mov.u32 %r0, s; add.u32 %r0, %r0, -128; st.shared.u32 [%r0+128], 77;
    ld.shared.u32 %r1, [s]; st.global.u32 [%b], %r1;"""
    second = np.zeros(1, np.uint32)
    run(body, np.zeros(1, np.uint32), second, engine=engine, threads=1)
    assert second[0] == 77


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["st.bulk.weak.shared::cta [%r0]", "st.bulk [%d2]"])
def test_many_zeros_at_once(form: str, engine: str) -> None:
    """Lane t clears 8 * (t % 4) bytes of its 32, in shared memory or by their generic address."""
    body = f"""mul.lo.u32 %r0, %t, 32; mov.u32 %r1, s; add.u32 %r0, %r0, %r1;
    cvt.u64.u32 %d1, %r0; cvta.shared.u64 %d2, %d1;
    and.b32 %r2, %t, 3; shl.b32 %r2, %r2, 3; cvt.u64.u32 %d0, %r2;
    mov.u32 %r3, -1; st.shared.v4.b32 [%r0], {{%r3, %r3, %r3, %r3}};
    st.shared.v4.b32 [%r0+16], {{%r3, %r3, %r3, %r3}};
    {form}, %d0, 0;
    mul.wide.u32 %d1, %t, 32; add.u64 %b, %b, %d1;
    ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r0]; st.global.v4.b32 [%b], {{%r4, %r5, %r6, %r7}};
    ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r0+16];
    st.global.v4.b32 [%b+16], {{%r4, %r5, %r6, %r7}};"""
    second = np.zeros((32, 4), np.int64)
    run(body, np.zeros(1), second, engine=engine)
    assert np.array_equal(second, np.where(np.arange(4) < np.arange(32)[:, None] % 4, 0, -1))


def test_only_zeros_can_be_stored_so() -> None:
    with pytest.raises(PtxSyntaxError, match="only supports the number 0"):
        run("st.bulk [%a], 8, 1;", np.zeros(4), np.zeros(4), engine="compiled")
