"""Copies of boxes of tensors (TMA) on both engines, against NumPy: ranks, steps, swizzles, fills,
im2col, reductions; what misuse gives; and copies that complete late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tensor_cases import (
    CAPACITY,
    SPANS,
    TYPES,
    Case,
    kernel,
    map_of,
    random_case,
    random_columns,
    table,
)

import warploom as wl

ENGINES = ("reference", "compiled")
MANY = {"reference": 1, "compiled": 6}
"""How many random cases of a kind each engine gets."""


def run(cases: list[Case], moves: str, engine: str, schedule: str = "converge") -> None:
    """Copy the boxes, and compare shared memory and tensors with what NumPy has."""
    gpu = wl.Device("h100", engine=engine, schedule=schedule)
    contents = [case.content(seed) for seed, case in enumerate(cases)]
    buffers = [gpu.to_device(content) for content in contents]
    pairs = zip(cases, buffers, strict=True)
    maps = b"".join(bytes(map_of(gpu, case, buffer)) for case, buffer in pairs)
    shared = np.random.default_rng(7).integers(0, 60, CAPACITY).astype(np.uint8)
    out = np.zeros((len(cases), CAPACITY), np.uint8)
    output = np.frombuffer(maps, np.uint8).copy()
    gpu.compile(kernel(moves), "ptx")["k"][len(cases), 32](output, table(cases), shared, out)
    for case, content, buffer, found in zip(cases, contents, buffers, out, strict=True):
        if moves == "load":
            np.testing.assert_array_equal(
                case.elements(found).astype(float), case.expected(content).astype(float), str(case)
            )
            kept = np.delete(np.arange(CAPACITY), case.order())
            assert (found[kept] == shared[kept]).all(), case
            expected = content
        else:
            op = "" if moves == "store" else moves
            expected = case.stored(content, case.elements(shared), op)
        np.testing.assert_array_equal(buffer.copy_to_host(), expected, str(case))


def boxes(engine: str) -> list[Case]:
    """Random boxes of every rank with every swizzle."""
    kinds = [(rank, swizzle) for rank in range(1, 6) for swizzle in SPANS]
    every = len(kinds) if engine == "reference" else 1
    found = [
        random_case(1000 * rank + 10 * number + n, rank, swizzle)
        for number, (rank, swizzle) in enumerate(kinds)
        for n in range(MANY[engine])
    ]
    return found[:: max(1, every // 12)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moves", ["load", "store"])
def test_boxes_of_every_rank_and_swizzle(engine: str, moves: str) -> None:
    run(boxes(engine), moves, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moves", ["load", "store"])
def test_columns_of_pixels(engine: str, moves: str) -> None:
    """A convolution's columns. Stores have no offsets."""
    count = 30 if engine == "compiled" else 3
    cases = [
        random_columns(50 * rank + n, rank, list(SPANS)[n % 4])
        for rank in (3, 4, 5)
        for n in range(count)
    ]
    if moves == "store":
        cases = [replace(case, offsets=(0,) * len(case.offsets)) for case in cases]
    run(cases, moves, engine)


NUMBERS = {
    "add": ("s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": ("s32", "u64", "f16", "bf16"),
    "max": ("s32", "u64", "f16", "bf16"),
    "and": ("s32", "u64"),
    "or": ("s32", "u64"),
    "xor": ("s32", "u64"),
    "inc": ("s32",),
    "dec": ("s32",),
}


@pytest.mark.parametrize("op", NUMBERS)
def test_reductions(op: str) -> None:
    """Every operation on every type. What shared memory holds of floats is any bits but NaNs."""
    for engine in ENGINES:
        cases = [
            Case(type, (5, 40), (3, 32 // np.dtype(TYPES[type]).itemsize), (1, 1), (3, 2))
            for type in NUMBERS[op]
        ]
        run(cases, op, engine)


# ---- one box ------------------------------------------------------------------------------------

ONE = """
.version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{{
    .reg .b64 %map, %out; .reg .b32 %t, %buf, %bar, %v; .reg .pred %first, %p;
    .shared .align 1024 .b8 buf[2048]; .shared .align 8 .b64 bar;
    mov.b64 %map, map; cvta.param.u64 %map, %map;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %buf, buf; mov.u32 %bar, bar;
    {before}
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], {bytes};
    {copy}
waits:
    {wait}
    bar.sync 0;
    mad.lo.u32 %buf, %t, 4, %buf; mad.wide.u32 %out, %t, 4, %out;
    ld.shared.u32 %v, [%buf]; st.global.u32 [%out], %v;
    ret;
}}
"""
INIT = "@%first mbarrier.init.shared::cta.b64 [%bar], 1;"
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], {}; @!%p bra waits;"
LOAD = "cp.async.bulk.tensor.{dim}.shared::cluster.global{mode}.mbarrier::complete_tx::bytes"
COPY = f"@%first {LOAD.format(dim='2d', mode='')} [%buf], [%map, {{{{4, 1}}}}], [%bar];"


def one(
    gpu: wl.Device, given: wl.TensorMap | bytes, target: str = "sm_90a", **changed: str
) -> np.ndarray:
    """The first 32 words of a box of 4 x 8 words, from row 1 and column 4 of the tensor on."""
    parts = {"before": INIT, "copy": COPY, "wait": WAIT.format(0), "bytes": "128"} | changed
    text = ONE.format(target=target, **parts).replace("{{", "{").replace("}}", "}")
    out = np.zeros(32, np.uint32)
    gpu.compile(text, "ptx")["k"][1, 32](given, out)
    return out.reshape(4, 8)


WORDS = np.arange(16 * 16, dtype=np.uint32).reshape(16, 16)
POLICIES = ("converge", "fair", "random", "adversarial")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_wait_that_is_missing_or_wrong_shows(engine: str, policy: str) -> None:
    """With its wait a copy is right under every schedule; without, or for the phase before, only
    where it happens to complete at once."""
    gpu = wl.Device("h100", engine=engine, schedule=policy)
    data = gpu.to_device(WORDS)
    box = gpu.tensor_map(data, (4, 8))
    assert (one(gpu, box) == WORDS[1:5, 4:12]).all()
    missing = one(gpu, box, wait="")
    assert (missing == (0 if policy == "adversarial" else WORDS[1:5, 4:12])).all()
    if policy == "adversarial":
        assert (one(gpu, box, wait=WAIT.format(1)) == 0).all()
        # Too few bytes are expected: the phase never completes.
        with pytest.raises(wl.DeadlockError, match="spin"):
            one(gpu, box, bytes="112")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_phase_completes_no_more_than_it_expects(engine: str) -> None:
    """Of two boxes, where the bytes of one are expected, the second is not there yet."""
    gpu = wl.Device("h100", engine=engine, schedule="adversarial")
    data = gpu.to_device(WORDS)
    box = gpu.tensor_map(data, (4, 8))
    both = COPY.replace("[%buf]", "[%buf+128]") + COPY
    assert (one(gpu, box, copy=both) == 0).all()
    assert (one(gpu, box, copy=both, bytes="256") == WORDS[1:5, 4:12]).all()


def test_a_map_keeps_its_buffer() -> None:
    gpu = wl.Device("h100")
    box = gpu.tensor_map(gpu.to_device(WORDS), (4, 8))
    assert (one(gpu, box) == WORDS[1:5, 4:12]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_stores_are_read_when_they_are_waited_for(engine: str) -> None:
    """Who changes shared memory before the group is waited for has the new words stored."""
    store = """
    @%first mbarrier.complete_tx.relaxed.cta.shared.b64 [%bar], 128;
    mad.lo.u32 %v, %t, 4, %buf; st.shared.u32 [%v], %t; bar.sync 0;
    @%first cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {{4, 1}}], [%buf];
    @%first cp.async.bulk.commit_group;
    WAITS
    bar.sync 0; mad.lo.u32 %v, %t, 4, %buf; mov.u32 %t, 7; st.shared.u32 [%v], %t;
    mov.u32 %t, %tid.x; bar.sync 0;
    @%first cp.async.bulk.wait_group 0;
    """
    waits = "@%first cp.async.bulk.wait_group.read 0;"
    for policy, wait, word in (
        ("adversarial", "", 7),
        ("converge", "", 0),
        ("adversarial", waits, 0),
    ):
        gpu = wl.Device("h100", engine=engine, schedule=policy)
        data = gpu.to_device(WORDS)
        one(gpu, gpu.tensor_map(data, (4, 8)), copy=store.replace("WAITS", wait))
        expected = WORDS.copy()
        expected[1:5, 4:12] = word or np.arange(32).reshape(4, 8)
        assert (data.copy_to_host() == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_misuse_is_a_fault(engine: str) -> None:
    gpu = wl.Device("h100", engine=engine)
    data = gpu.to_device(WORDS)
    box = gpu.tensor_map(data, (4, 8))
    line = gpu.tensor_map(data, (32,), shape=(256,))
    for given, changed, message in (
        (bytes(128), {}, "is not the address of a tensor map"),
        (line, {}, "a tensor map of 1 dimensions, created for tile"),
        (box, {"copy": COPY.replace("[%buf]", "[%buf+16]")}, "is not a multiple of 128"),
        (box, {"copy": COPY.replace("[%buf]", "[%buf+2048]")}, "Invalid __shared__ copy"),
        (box, {"before": ""}, "uninitialized mbarrier"),
    ):
        with pytest.raises(wl.MemoryFault, match=message):
            one(gpu, given, **changed)
    data.free()
    with pytest.raises(wl.MemoryFault, match="Check the tensor map"):
        one(gpu, box)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_gathered(engine: str) -> None:
    gpu = wl.Device(cc="10.0", engine=engine)
    kept = gpu.to_device(WORDS)
    box = gpu.tensor_map(kept, (1, 8))
    copy = f"@%first {LOAD.format(dim='2d', mode='.tile::gather4')}"
    copy += " [%buf], [%map, {{4, 9, 2, 16, 2}}], [%bar];"
    found = one(gpu, box, "sm_100a", copy=copy)
    assert (found == [*WORDS[[9, 2], 4:12], np.zeros(8), WORDS[2, 4:12]]).all()


def test_maps_that_are_refused() -> None:
    """The rules of cuTensorMapEncodeTiled (cuda.h)."""
    gpu = wl.Device("h100")
    words = gpu.to_device(WORDS)
    cases: list[tuple[tuple[int, int], dict[str, Any], str]] = [
        ((4, 300), {}, "must be from 1 to 256"),
        ((4, 3), {}, "has 12 bytes, but its size must be a multiple of 16"),
        ((4, 32), {"swizzle": "64B"}, "but at most 64 are allowed with swizzle 64B"),
        ((4, 8), {"strides": (40,)}, "stride must be a multiple of 16 bytes"),
        ((4, 8), {"fill": "nans"}, "elements of type u32 cannot be filled with NaNs"),
        ((4, 8), {"element_strides": (9, 1)}, "must be from 1 to 8"),
        ((4, 8), {"offset": 4, "shape": (4, 8), "strides": (64,)}, "must be a multiple of 16"),
        ((4, 8), {"interleave": "16B"}, "rank must be from 3 to 5, not 2"),
        ((4, 8), {"shape": (17, 16)}, "extends past the end"),
    ]
    for box, options, message in cases:
        with pytest.raises(wl.WarploomError, match=message):
            gpu.tensor_map(words, box, **options)


MASKED = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 mask)
{
    .reg .b64 %out, %at; .reg .b32 %t, %v, %m; .reg .b16 %h; .reg .pred %p;
    .shared .align 16 .b32 box[32];
    ld.param.u64 %out, [out]; ld.param.u32 %m, [mask]; cvt.u16.u32 %h, %m;
    mov.u32 %t, %tid.x; mov.u32 %v, box; mad.lo.u32 %v, %t, 4, %v;
    mul.lo.u32 %t, %t, 0x01010101; add.u32 %t, %t, 0x01010101; st.shared.u32 [%v], %t;
    fence.proxy.async.shared::cta; bar.sync 0;
    mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p bra END;
    mov.u32 %v, box;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%v], 96, %h;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
END:
    ret;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mask", [0, 0x8001, 0x7FF0, 0xFFFF])
def test_a_mask_says_which_bytes_of_each_16_are_copied(mask: int, engine: str) -> None:
    """96 bytes of 128, in which byte i is i / 4 + 1 (PTX ISA, cp.async.bulk, cp_mask)."""
    gpu = wl.Device("b200", engine=engine, schedule="adversarial")
    out = np.full(128, 200, np.uint8)
    gpu.compile(MASKED, "ptx")["k"][1, 32](out, mask)
    place = np.arange(128)
    copied = (place < 96) & (mask >> place % 16 & 1 == 1)
    assert np.array_equal(out, np.where(copied, place // 4 + 1, 200))
