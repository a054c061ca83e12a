"""Copies of boxes that take values of the tensor map from operands (PTX ISA, "Overriding tensor
property value"): another global address, other sizes, other strides."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")

KERNEL = """
.version 9.4
.target sm_107a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 tensor, .param .u64 out)
{{
    .reg .b64 %map, %new, %out; .reg .b32 %t, %buf, %bar, %v, %s<3>; .reg .b16 %h<3>;
    .reg .pred %first, %p;
    .shared .align 128 .b32 buf[32]; .shared .align 8 .b64 bar;
    mov.b64 %map, map; cvta.param.u64 %map, %map;
    ld.param.u64 %new, [tensor]; ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %bar, bar;
    mov.u32 %buf, buf; mad.lo.u32 %v, %t, 4, %buf; st.shared.u32 [%v], %t;
    @%first mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.proxy.async; bar.sync 0;
    mov.b16 %h0, 6; mov.b16 %h1, 2; mov.b16 %h2, 0; mov.b32 %s0, 4;
    {copy}
    bar.sync 0;
    mad.wide.u32 %out, %t, 4, %out; mad.lo.u32 %buf, %t, 4, %buf;
    ld.shared.u32 %v, [%buf]; st.global.u32 [%out], %v;
    ret;
}}
"""

LOAD = """
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 128;
    @%first cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes{} [%buf],
        [%map, {}], [%bar];
wait:
    mbarrier.try_wait.parity.phase_type::conditional.shared::cta.b64 %p, [%bar], 0; @!%p bra wait;
"""
STORE = """
    @%first cp{}.async.bulk.tensor.2d.global.shared::cta{}.tile.bulk_group{} [%map, {}], [%buf];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
"""
ADDRESS = ".override::global_address"
SHAPE = f"{ADDRESS}.override::global_dim_stride"
SIZES = "%new, {%h0, %h1}, {%s0}, %h2"
"""6 columns and 2 rows, which are 4 units of 16 bytes apart: 16 words."""


def run(engine: str, copy: str, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Executes a copy of a box of 4 rows of 8 words, whose map is of a tensor of zeros of 4 rows of
    8 words. The new address is that of the numbers from 100 on, and `offset` bytes. Returns what
    shared memory and the numbers are then."""
    gpu = wl.Device(cc="10.7", engine=engine)
    zeros = gpu.zeros((4, 8), np.uint32)
    tensor = gpu.to_device(np.arange(100, 164, dtype=np.uint32))
    map = gpu.tensor_map(zeros, (4, 8))
    out = gpu.zeros(32, np.uint32)
    gpu.compile(KERNEL.format(copy=copy), "ptx")["k"][1, 32](map, tensor.address + offset, out)
    assert not zeros.copy_to_host().any()
    return out.copy_to_host().reshape(4, 8), tensor.copy_to_host()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quiet", ["", ".mbarrier::report::disabled"])
def test_a_load_takes_the_new_address(engine: str, quiet: str) -> None:
    """Row y of the map's tensor is 8 words behind row y - 1; row 4 lies beyond it, and is 0."""
    loaded, _ = run(engine, LOAD.format(quiet + ADDRESS, "%new, {0, 1}"))
    expected = 100 + np.arange(8, 40).reshape(4, 8)
    expected[3] = 0
    assert (loaded == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_load_takes_new_sizes_and_strides(engine: str) -> None:
    loaded, _ = run(engine, LOAD.format(SHAPE, f"{SIZES}, {{0, 0}}"))
    expected = np.zeros((4, 8), np.uint32)
    expected[0, :6] = 100 + np.arange(6)
    expected[1, :6] = 116 + np.arange(6)
    assert (loaded == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_takes_new_sizes_and_strides(engine: str) -> None:
    """Thread t has written t to word t of the box, 8 words a row."""
    _, stored = run(engine, STORE.format("", "", SHAPE, f"{SIZES}, {{0, 0}}"))
    expected = np.arange(100, 164)
    expected[:6] = np.arange(6)
    expected[16:22] = np.arange(8, 14)
    assert (stored == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reduction_takes_the_new_address(engine: str) -> None:
    _, stored = run(engine, STORE.format(".reduce", ".add", ADDRESS, "%new, {0, 2}"))
    expected = np.arange(100, 164)
    expected[16:32] += np.arange(16)
    assert (stored == expected).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("new", "operands", "offset"),
    [(ADDRESS, "%new, {0, 0}", 8), (SHAPE, f"{SIZES}, {{1, 0}}", 0)],
)
def test_misuse_is_a_fault(engine: str, new: str, operands: str, offset: int) -> None:
    """The address is a multiple of 16, and with new sizes coordinates are 0."""
    with pytest.raises(wl.MemoryFault, match="Overriding tensor property value"):
        run(engine, LOAD.format(new, operands), offset)


@pytest.mark.parametrize(
    ("new", "operands", "message"),
    [
        (ADDRESS, "{0, 0}", r"\[map, address, {c0, ...}\]"),
        (SHAPE, "%new, {%h0}, {%s0}, %h2, {0, 0}", "2 8 or 16-bit integers in braces"),
        (SHAPE, "%new, {%h0, %h1}, {%s0, %s0}, %h2, {0, 0}", "1 32-bit integers"),
        (SHAPE, "%new, {%h0, %h1}, {%s0}, %s1, {0, 0}", "one 16-bit value for `high`"),
    ],
)
def test_operands_are_as_many_and_as_wide_as_the_manual_says(
    new: str, operands: str, message: str
) -> None:
    with pytest.raises(wl.PtxSyntaxError, match=message):
        wl.Device(cc="10.7").compile(KERNEL.format(copy=LOAD.format(new, operands)), "ptx")
