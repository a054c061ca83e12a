"""Compares the instructions that ptxas takes with those that are decoded here.

Forms are written out of the PTX manual's syntax, for the newest architectures; ptxas says which of
them are PTX, and every one of these has to be decoded. Run it by `make test-ptxas`; it prints what
is not decoded, and its exit status is 1 where that is more than 3 %.
"""
# ruff: noqa: E501 (a template stands in one line)

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from warploom.core.errors import WarploomError
from warploom.ptx.parser import parse

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
VERSION = "9.2"
"""The version of PTX that the forms are written for: that of the manual that they are taken from."""

REQUIRED = 0.97

REGISTERS = (
    ".reg .b16 %h<300>; .reg .b32 %r<300>; .reg .b64 %rd<300>; .reg .f32 %f<300>; .reg .f64 %fd<300>;"
    " .reg .pred %p<4>; .reg .b128 %q<300>;"
)
HOLDERS = {
    **dict.fromkeys(("b16", "u16", "s16", "f16", "bf16"), "%h1"),
    **dict.fromkeys(("b8", "u8", "s8"), "%h1"),
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2", "u16x2", "s16x2"), "%r1"),
    **dict.fromkeys(("b64", "u64", "s64", "f32x2"), "%rd1"),
    "f32": "%f1",
    "f64": "%fd1",
    "b128": "%q1",
}
"""Registers by type: what stands for `$type` in operands."""

SCOPES = "cta|cluster|gpu|sys"
DIMS = ("1d", "2d", "3d", "4d", "5d")


def written(template: str) -> Iterator[str]:
    """Yield the texts of a template: `<a|b>` is one of them, `$` the register of the last type."""
    parts = re.split(r"<([^>]*)>", template)
    for chosen in itertools.product(*(part.split("|") for part in parts[1::2])):
        text = "".join(itertools.chain(*itertools.zip_longest(parts[::2], chosen, fillvalue="")))
        opcode, _, operands = text.partition(" ")
        types = [part for part in opcode.split(".") if part in HOLDERS]
        yield f"{opcode} {operands.replace('$', HOLDERS[types[-1]] if types else '%r1')};"


def vector(kind: str, count: int) -> str:
    return "{" + ", ".join(f"%{kind}{n}" for n in range(count)) + "}"


TEMPLATES = [
    # Memory, its orders and hints.
    "ld<|.weak|.volatile>.<global|shared|shared::cta>.<b8|u16|b32|s32|f32|b64|f64> $, [%rd1]",
    f"ld.<relaxed|acquire>.<{SCOPES}>.<global|shared>.<b32|u64|f32> $, [%rd1]",
    f"st.<relaxed|release>.<{SCOPES}>.<global|shared>.<b32|u64|f32> [%rd1], $",
    "ld.global<|.L1::evict_first|.L1::evict_last|.L1::no_allocate><|.L2::128B>.<b32|f64> $, [%rd1]",
    "ld.global.nc<|.L1::no_allocate><|.L2::cache_hint|.L2::256B>.b32 $, [%rd1]",
    "ld.shared::cluster.<b32|u64|f32> $, [%r1]",
    "st.shared::cluster.<b32|u64|f32> [%r1], $",
    "ld.global.v2.<b32|b64|f32|f64> {$, $}, [%rd1]",
    "ld.global.v8.b32 " + vector("r", 8) + ", [%rd1]",
    "ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd1]",
    "st.global.v8.f32 [%rd1], " + vector("f", 8),
    f"atom<|.relaxed|.acq_rel><.{SCOPES.replace('|', '|.')}>.<global|shared>.add.<u32|u64|f32> $, [%rd1], $",
    f"red<|.relaxed|.release><.{SCOPES.replace('|', '|.')}>.global.<add|min|max>.<u32|s32|u64> [%rd1], $",
    "atom.<global|shared>.<and|or|xor|exch>.<b32|b64> $, [%rd1], $",
    "atom.global.cas.<b16|b32|b64|b128> $, [%rd1], $, $",
    "red.global.add.noftz.<f16|bf16|f16x2|bf16x2> [%rd1], $",
    "red.global.v2.f32.add [%rd1], {%f1, %f2}",
    "atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4}",
    "atom.shared::cluster.<add|min|max>.<u32|u64> $, [%r1], $",
    # Barriers, fences, clusters.
    "barrier.cluster.arrive<|.release|.relaxed><|.aligned>",
    "barrier.cluster.wait<|.acquire><|.aligned>",
    f"fence<|.sc|.acq_rel|.acquire|.release>.<{SCOPES}>",
    "fence.proxy.<alias|async|async.global|async.shared::cta|async.shared::cluster>",
    f"fence.proxy.tensormap::generic.release.<{SCOPES}>",
    f"fence.proxy.tensormap::generic.acquire.<{SCOPES}> [%rd1], 128",
    "fence.mbarrier_init.release.cluster",
    "fence.<acquire|release>.sync_restrict::<shared::cluster|shared::cta>.cluster",
    "fence.proxy.async::generic.<acquire|release>.sync_restrict::shared::cluster.cluster",
    "mapa<|.shared::cluster>.<u32|u64> $, $, %r2",
    "getctarank<|.shared::cluster>.<u32|u64> %r2, $",
    "elect.sync %r1|%p1, 0xffffffff",
    "griddepcontrol.<launch_dependents|wait>",
    "setmaxnreg.<inc|dec>.sync.aligned.u32 <40|96|232>",
    "mbarrier.init.<shared|shared::cta>.b64 [%r1], 1",
    "mbarrier.inval.shared::cta.b64 [%r1]",
    "mbarrier.arrive<|.release|.relaxed><.cta|.cluster>.<shared|shared::cta>.b64 %rd1, [%r1]<|, 2>",
    "mbarrier.arrive.<release|relaxed>.cluster.shared::cluster.b64 _, [%r1]<|, 2>",
    "mbarrier.arrive.expect_tx<|.release|.relaxed><.cta|.cluster>.shared::cta.b64 %rd1, [%r1], %r2",
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r1], %r2",
    "mbarrier.arrive_drop<|.release.cta|.release.cluster>.shared::cta.b64 %rd1, [%r1]",
    "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd1, [%r1], 2",
    "mbarrier.<expect_tx|complete_tx>.relaxed.<cta|cluster>.<shared::cta|shared::cluster>.b64 [%r1], %r2",
    "mbarrier.<test_wait|try_wait><|.acquire.cta|.acquire.cluster|.relaxed.cta>.shared::cta.b64 %p1, [%r1], %rd1",
    "mbarrier.<test_wait|try_wait>.parity<|.acquire.cta|.acquire.cluster|.relaxed.cluster>.shared::cta.b64 %p1, [%r1], %r2",
    "mbarrier.try_wait<|.parity>.shared::cta.b64 %p1, [%r1], <%rd1|%r2>, %r3",
    "mbarrier.pending_count.b64 %r1, %rd1",
    # Asynchronous copies.
    "cp.async.<ca|cg>.shared<|::cta>.global<|.L2::128B> [%r1], [%rd1], 16",
    "cp.async.mbarrier.arrive<|.noinc><|.shared::cta>.b64 [%r1]",
    "cp.async.bulk.<shared::cluster|shared::cta>.global.mbarrier::complete_tx::bytes<|.L2::cache_hint> [%r1], [%rd1], %r2, [%r3]<|, %rd2>",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], %r2, [%r3], %h1",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r4], %r2, [%r3]",
    "cp.async.bulk.global.shared::cta.bulk_group<|.L2::cache_hint|.cp_mask> [%rd1], [%r1], %r2<|, %rd2|, %h1>",
    "cp.async.bulk.prefetch.L2.global<|.L2::cache_hint> [%rd1], %r2<|, %rd2>",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group<|.read> <0|3>",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.<and|or|xor>.<b32|b64> [%rd1], [%r1], %r2",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.<add|min|max>.<u32|s32|u64|s64|f32|f64> [%rd1], [%r1], %r2",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.<inc|dec>.u32 [%rd1], [%r1], %r2",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.<min|max|add.noftz>.<f16|bf16> [%rd1], [%r1], %r2",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.<add|min|max|inc|dec>.<u32|s32|u64> [%r1], [%r4], %r2, [%r3]",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.<and|or|xor>.b32 [%r1], [%r4], %r2, [%r3]",
    "st.async<|.weak>.shared::cluster.mbarrier::complete_tx::bytes.<b32|u32|s32|f32|b64|u64> [%r1], $, [%r3]",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.<b32|b64> [%r1], {$, $}, [%r3]",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.<add|min|max|inc|dec|and|or|xor>.<u32|s32|u64|b32> [%r1], $, [%r3]",
    "st.bulk.weak.shared::cta [%r1], %rd1, 0",
    "prefetch.<|const.|param.>tensormap [%rd1]",
    "tensormap.replace.tile.global_address.<global|shared::cta>.b1024.b64 [%rd1], %rd2",
    "tensormap.replace.tile.<rank>.<global|shared::cta>.b1024.b32 [%rd1], %r1",
    "tensormap.replace.tile.<box_dim|global_dim|element_stride>.<global|shared::cta>.b1024.b32 [%rd1], <0|4>, %r1",
    "tensormap.replace.tile.global_stride.<global|shared::cta>.b1024.b64 [%rd1], <0|3>, %rd2",
    "tensormap.replace.tile.<elemtype|interleave_layout|swizzle_mode|fill_mode|swizzle_atomicity>.<global|shared::cta>.b1024.b32 [%rd1], <0|1>",
    f"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<{SCOPES}>.sync.aligned [%rd1], [%r1], 128",
    # Matrices.
    "ldmatrix.sync.aligned.m8n8.x<1|2|4><|.trans>.<shared|shared::cta>.b16 V, [%r1]",
    "ldmatrix.sync.aligned.m16n16.x<1|2>.trans.shared.<b8|b8x16.b6x16_p32|b8x16.b4x16_p64> W, [%r1]",
    "ldmatrix.sync.aligned.m8n16.x<1|2|4>.shared.<b8x16.b6x16_p32|b8x16.b4x16_p64> V, [%r1]",
    "stmatrix.sync.aligned.m8n8.x<1|2|4><|.trans>.<shared|shared::cta>.b16 [%r1], V",
    "stmatrix.sync.aligned.m16n8.x<1|2|4>.trans.shared.b8 [%r1], V",
    "redux.sync.<min|max><|.abs><|.NaN>.f32 %f1, %f2, %r1",
    # Blackwell.
    "clusterlaunchcontrol.try_cancel.async<|.shared::cta>.mbarrier::complete_tx::bytes<|.multicast::cluster::all>.b128 [%r1], [%r2]",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3, %r4}, %q1",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::<x|y|z>.b32.b128 %r1, %q1",
    "multimem.ld_reduce<|.weak|.relaxed.gpu|.acquire.sys>.global.<add|min|max>.<u32|s32|u64> $, [%rd1]",
    "multimem.ld_reduce.global.<and|or|xor>.<b32|b64> $, [%rd1]",
    "multimem.ld_reduce.global.<add|min|max><|.acc::f32>.<f16|bf16|f16x2|bf16x2> $, [%rd1]",
    "multimem.ld_reduce.global.add<|.acc::f32>.v4.<f16x2|bf16x2> {$, $, $, $}, [%rd1]",
    "multimem.ld_reduce.global.add.<f32|f64> $, [%rd1]",
    "multimem.ld_reduce.global.add.v4.f32 {$, $, $, $}, [%rd1]",
    "multimem.st<|.weak|.relaxed.gpu|.release.sys>.global.<b32|u64|f32|f64|f16x2> [%rd1], $",
    "multimem.red<|.relaxed.gpu|.release.sys>.global.<add|min|max>.<u32|s32|u64|f16x2|bf16x2> [%rd1], $",
    "multimem.red.global.<and|or|xor>.<b32|b64> [%rd1], $",
    "tcgen05.alloc.cta_group::<1|2>.sync.aligned<|.shared::cta>.b32 [%r1], <32|512|%r2>",
    "tcgen05.dealloc.cta_group::<1|2>.sync.aligned.b32 %r1, <32|%r2>",
    "tcgen05.relinquish_alloc_permit.cta_group::<1|2>.sync.aligned",
    "tcgen05.<wait::ld|wait::st>.sync.aligned",
    "tcgen05.fence::<before|after>_thread_sync",
    "tcgen05.shift.cta_group::<1|2>.down [%r1]",
    "tcgen05.commit.cta_group::<1|2>.mbarrier::arrive::one<|.shared::cluster>.b64 [%r1]",
    "tcgen05.commit.cta_group::<1|2>.mbarrier::arrive::one<|.shared::cluster>.multicast::cluster.b64 [%r1], %h1",
    "tcgen05.cp.cta_group::<1|2>.<128x256b|4x256b|128x128b|64x128b.warpx2::02_13|64x128b.warpx2::01_23|32x128b.warpx4><|.b8x16.b6x16_p32|.b8x16.b4x16_p64> [%r1], %rd1",
    "tcgen05.mma.cta_group::<1|2>.kind::<f16|tf32|f8f6f4|i8><|.collector::a::fill|.collector::a::use|.collector::a::lastuse|.collector::a::discard> [%r1], <%rd1|[%r2]>, %rd2, %r3, %p1",
    "tcgen05.mma.cta_group::<1|2>.kind::<f16|tf32|f8f6f4|i8>.ashift<|.collector::a::use> [%r1], [%r2], %rd2, %r3, %p1",
    "tcgen05.mma.cta_group::1.kind::<f16|tf32|f8f6f4|i8> [%r1], <%rd1|[%r2]>, %rd2, %r3, {%r4, %r5, %r6, %r7}, <%p1|%p1, 3>",
    "tcgen05.mma.cta_group::<1|2>.kind::<f16|tf32> [%r1], %rd1, %rd2, %r3, %p1, <0|15>",
    "tcgen05.mma.cta_group::<1|2>.kind::mxf8f6f4.block_scale<|.scale_vec::1X|.block32><|.collector::a::use> [%r1], <%rd1|[%r2]>, %rd2, %r3, [%r4], [%r5], %p1",
    "tcgen05.mma.cta_group::<1|2>.kind::mxf4.block_scale<|.scale_vec::2X|.block32> [%r1], <%rd1|[%r2]>, %rd2, %r3, [%r4], [%r5], %p1",
    "tcgen05.mma.cta_group::<1|2>.kind::mxf4nvf4.block_scale.<scale_vec::2X|scale_vec::4X|block16|block32> [%r1], <%rd1|[%r2]>, %rd2, %r3, [%r4], [%r5], %p1",
    "tcgen05.mma.sp.cta_group::<1|2>.kind::<f16|tf32|f8f6f4|i8> [%r1], <%rd1|[%r2]>, %rd2, [%r6], %r3, %p1",
    "tcgen05.mma.sp.cta_group::<1|2>.kind::mxf8f6f4.block_scale [%r1], %rd1, %rd2, [%r6], %r3, [%r4], [%r5], %p1",
    "tcgen05.mma.sp.cta_group::<1|2>.kind::mxf4nvf4.block_scale.<scale_vec::4X|block16> [%r1], %rd1, %rd2, [%r6], %r3, [%r4], [%r5], %p1",
    "tcgen05.mma.ws.cta_group::1.kind::<f16|tf32|f8f6f4|i8><|.collector::b0::fill|.collector::b3::use|.collector::b1::lastuse> [%r1], <%rd1|[%r2]>, %rd2, %r3, <%p1|%p1, %rd3>",
    "tcgen05.mma.ws.sp.cta_group::1.kind::<f16|tf32|f8f6f4|i8> [%r1], <%rd1|[%r2]>, %rd2, [%r6], %r3, %p1",
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e5m2|e2m3|e3m2|e2m1>.f32 F, R, S, F",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale<|.scale_vec::1X>.f32.<e4m3|e2m1>.<e5m2|e3m2>.f32.ue8m0 F, R, S, F, %r1, {0, 1}, %r2, {1, 2}",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale<|.scale_vec::2X>.f32.e2m1.e2m1.f32.ue8m0 F, R, S, F, %r1, {0, 1}, %r2, {0, 1}",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.<scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0|scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3> F, R, S, F, %r1, {0, 1}, %r2, {0, 1}",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0 F, R, S, F, %r1, {0, 1}, %r2, {0, 3}",
    "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.<e4m3|e2m3|e2m1>.<e5m2|e3m2>.f16 S, R, S, S",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.<e4m3|e5m2|e2m3|e3m2|e2m1>.<e4m3|e2m1>.f32 F, R, R, F, %r1, 0",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale<|.scale_vec::1X>.f32.<e4m3|e2m1>.<e5m2|e3m2>.f32.ue8m0 F, R, R, F, %r1, 0, %r1, {3, 1}, %r2, {1, 2}",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::<mxf4.block_scale|mxf4.block_scale.scale_vec::2X|mxf4nvf4.block_scale.scale_vec::2X|mxf4nvf4.block_scale.scale_vec::4X>.f32.e2m1.e2m1.f32.ue8m0 F, R, R, F, %r1, 0, %r1, {0, 1}, %r2, {0, 3}",
    # Conversions.
    "cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2|e2m3x2|e3m2x2>.f32 %h1, %f1, %f2",
    "cvt.rn.satfinite<|.relu>.<e4m3x2|e5m2x2>.f16x2 %h1, %r1",
    "cvt.rn<|.relu>.f16x2.<e4m3x2|e5m2x2|e2m3x2|e3m2x2> %r1, %h1",
    "cvt.<rz|rp><|.satfinite>.ue8m0x2.<f32 %h1, %f1, %f2|bf16x2 %h1, %r1>",
    "cvt.rn.bf16x2.ue8m0x2 %r1, %h1",
    "cvt.<rn|rz><|.relu><|.satfinite>.<f16x2|bf16x2>.f32 %r1, %f1, %f2",
    "cvt.<rna|rn|rz><|.relu><|.satfinite>.tf32.f32 %r1, %f1",
    "cvt.rs<|.relu><|.satfinite>.<f16x2|bf16x2>.f32 %r1, %f1, %f2, %r2",
    "cvt.rs<|.relu>.satfinite.<e4m3x4|e5m2x4|e2m3x4|e3m2x4>.f32 %r1, {%f1, %f2, %f3, %f4}, %r2",
    "<add|sub|mul><.rn|.rz><|.ftz>.f32x2 %rd1, %rd2, %rd3",
    "fma<.rn|.rm><|.ftz>.f32x2 %rd1, %rd2, %rd3, %rd4",
]  # fmt: skip


def tensor_copies() -> Iterator[str]:
    """Yield copies of boxes of tensors, whose coordinates follow the rank."""
    hints, ends = ("", ".L2::cache_hint"), ("", ", %rd2")
    for rank, dim in enumerate(DIMS, 1):
        tensor = f"[%rd1, {{{', '.join(f'%r{9 + n}' for n in range(rank))}}}]"
        offsets = f", {{{', '.join(f'%h{n}' for n in range(1, rank - 1))}}}" if rank > 2 else ""
        modes = (
            ["", ".tile"]
            + [".im2col"] * (rank > 2)
            + [".im2col::w", ".im2col::w::128"] * (rank > 2)
        )
        for mode, (hint, end), group in itertools.product(
            modes, zip(hints, ends, strict=True), ("", ".cta_group::1", ".cta_group::2")
        ):
            extra = ""
            if mode.startswith(".im2col"):
                extra = offsets if mode == ".im2col" else ", {%h1, %h2}"
            load = f"cp.async.bulk.tensor.{dim}.%s.global{mode}.mbarrier::complete_tx::bytes"
            for into in ("shared::cluster", "shared::cta"):
                yield f"{load % into}{group}{hint} [%r1], {tensor}, [%r2]{extra}{end};"
            yield (
                f"{load % 'shared::cluster'}.multicast::cluster{group}{hint} [%r1], {tensor}, [%r2]"
                f"{extra}, %h3{end};"
            )
            if not group:
                yield f"cp.async.bulk.prefetch.tensor.{dim}.L2.global{mode}{hint} {tensor}{extra}{end};"
        for mode, (hint, end) in itertools.product(
            ["", ".tile"] + [".im2col_no_offs"] * (rank > 2), zip(hints, ends, strict=True)
        ):
            yield f"cp.async.bulk.tensor.{dim}.global.shared::cta{mode}.bulk_group{hint} {tensor}, [%r1]{end};"
            for redop in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
                yield (
                    f"cp.reduce.async.bulk.tensor.{dim}.global.shared::cta.{redop}{mode}.bulk_group"
                    f"{hint} {tensor}, [%r1]{end};"
                )
    gathered = "[%rd1, {%r1, %r2, %r3, %r4, %r5}]"
    yield f"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r1], {gathered}, [%r2];"
    yield f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group {gathered}, [%r1];"


def moves() -> Iterator[str]:
    """Yield loads and stores of tensor memory."""
    shapes = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
    for (shape, each), power in itertools.product(shapes.items(), range(8)):
        count = each << power
        if count > 128:
            continue
        split = ", 16" if shape == "16x32bx2" else ""
        held, num = vector("r", count), f"x{1 << power}"
        for pack in ("", "pack::16b."):
            yield f"tcgen05.ld.sync.aligned.{shape}.{num}.{pack}b32 {held}, [%r200]{split};"
            yield f"tcgen05.st.sync.aligned.{shape}.{num}.{pack and 'un' + pack}b32 [%r200]{split}, {held};"


def group_products() -> Iterator[str]:
    """Yield products of warp groups."""
    kinds = {
        ("f32", "f16", "f16"): (16, "1, 1, 0, 1", "1, -1, 0"), ("f32", "bf16", "bf16"): (16, "1, 1, 1, 0", "1, 1, 1"),
        ("f16", "f16", "f16"): (16, "-1, 1, 0, 0", "1, 1, 0"), ("f32", "tf32", "tf32"): (8, "1, 1", "1, 1"),
        ("f32", "e4m3", "e5m2"): (32, "1, 1", "1, 1"), ("s32", "s8", "u8"): (32, "", ""),
    }  # fmt: skip
    for ((d, a, b), (k, shared, held)), n in itertools.product(
        kinds.items(), (8, 16, 64, 128, 256)
    ):
        count, kind = (n // 4, "r") if d == "f16" else (n // 2, "f" if d == "f32" else "r")
        sums = vector(kind, count)
        for sparse in (False, True):
            shape, sp = f"m64n{n}k{2 * k if sparse else k}", ".sp" if sparse else ""
            meta = ", %r290, 0" if sparse else ""
            for left, tail in (("%rd1", shared), ("{%r280, %r281, %r282, %r283}", held)):
                end = f", {tail}" if tail else ""
                yield f"wgmma.mma_async{sp}.sync.aligned.{shape}.{d}.{a}.{b} {sums}, {left}, %rd2{meta}, %p1{end};"
    yield from ("wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;")
    yield "wgmma.wait_group.sync.aligned 1;"


LETTERS = {
    "V": lambda text: vector("r", int(re.findall(r"\.x(\d)\b", text)[0])),
    "W": lambda text: vector("r", 2 * int(re.findall(r"\.x(\d)\b", text)[0])),
    "F": lambda _: vector("f", 4),
    "R": lambda _: vector("r", 4),
    "S": lambda _: "{%r8, %r9}",
}


def with_registers(text: str) -> str:
    """Return an instruction with registers in the place of each letter."""
    for letter, made in LETTERS.items():
        if re.search(rf" {letter}[,;]", text):
            text = re.sub(rf"(?<= ){letter}(?=[,;])", made(text), text)
    return text


def forms() -> list[str]:
    """Return all instructions, with operands."""
    found = [text for template in TEMPLATES for text in written(template)]
    found = [with_registers(text) for text in found]
    return list(dict.fromkeys([*found, *tensor_copies(), *moves(), *group_products()]))


def module(target: str, lines: list[str], version: str = VERSION) -> str:
    head = f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ {REGISTERS}\n"
    return head + "\n".join(lines) + "\nret;\n}\n"


HEAD_LINES = 4


def taken(ptxas: str, target: str, lines: list[str], version: str = VERSION) -> list[str]:
    """Return the lines that ptxas takes in a version of PTX: those of which it says nothing."""
    kept = list(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forms.ptx")
        while True:
            # The last line has an error, so that ptxas makes no machine code of the others.
            path.write_text(module(target, [*kept, "add.f32 %rd1, %rd1, %rd1;"], version), "utf-8")
            command = [ptxas, f"-arch={target}", str(path), "-o", str(Path(folder, "o"))]
            said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            wrong = {int(line) - HEAD_LINES - 1 for line in re.findall(r"line (\d+);", said)}
            left = [text for number, text in enumerate(kept) if number not in wrong]
            if len(left) == len(kept):
                return kept
            kept = left


def is_decoded(target: str, line: str, version: str = VERSION) -> bool:
    """Return whether a line of a version of PTX is decoded here."""
    try:
        parse(module(target, [line], version), "forms.ptx")
    except WarploomError:
        return False
    return True


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit("usage: ptxas_forms.py PTXAS")
    ptxas = sys.argv[1]
    known = missing = 0
    lines = forms()
    print(f"{len(lines)} forms")
    for target in TARGETS:
        accepted = taken(ptxas, target, lines)
        absent = [line for line in accepted if not is_decoded(target, line)]
        known, missing = known + len(accepted), missing + len(absent)
        print(f"{target}: ptxas takes {len(accepted)}, {len(absent)} of them are not decoded")
        names = Counter(".".join(line.split()[0].split(".")[:4]) for line in absent)
        for name, count in names.most_common():
            example = next(line for line in absent if line.startswith(name))
            print(f"  {count:4} {name}: {example[:150]}")
    print(f"{1 - missing / known:.1%} of {known} are decoded")
    return int(missing > (1 - REQUIRED) * known)


if __name__ == "__main__":
    sys.exit(main())
