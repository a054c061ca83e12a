"""Tensor maps that kernels make: all fields of 128 zero bytes in shared memory are replaced, and
the map is copied to global memory (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import MemoryFault

ROWS, COLUMNS, F32 = 8, 16, 7
BOX = (4, 8)

REPLACED = f"""
.b1024.b64 global_address: %in;
.b1024.b32 rank: 1;
.b1024.b32 box_dim: 0, {BOX[1]};
.b1024.b32 box_dim: 1, {BOX[0]};
.b1024.b32 global_dim: 0, {COLUMNS};
.b1024.b32 global_dim: 1, {ROWS};
.b1024.b64 global_stride: 0, {4 * COLUMNS};
.b1024.b32 element_stride: 0, 1;
.b1024.b32 element_stride: 1, 1;
.b1024.b32 elemtype: {F32};
.b1024.b32 interleave_layout: 0;
.b1024.b32 swizzle_mode: 0;
.b1024.b32 fill_mode: 0;
"""

KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 map, .param .u64 out, .param .u32 first)
{
.shared .align 128 .b8 made[128];
.shared .align 128 .b8 tile[128];
.shared .align 8 .b64 full;
.reg .b64 %in, %map, %out, %at; .reg .b32 %t, %s, %word; .reg .pred %one, %done;
ld.param.u64 %in, [in]; ld.param.u64 %map, [map]; ld.param.u64 %out, [out];
ld.param.u32 %word, [first];
mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0;
mov.u32 %s, made; mad.lo.u32 %s, %t, 4, %s; st.shared.u32 [%s], %word;
@%one mbarrier.init.shared.b64 [full], 1;
bar.warp.sync -1;
REPLACED
bar.warp.sync -1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
  [%map], [made], 128;
fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
@%one mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
@%one cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  [tile], [%map, {4, 6}], [full];
WAIT:
mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
@!%done bra WAIT;
mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; ld.shared.b32 %word, [%s];
mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %out; st.global.b32 [%at], %word;
ret;
}
"""


def replaced() -> str:
    lines: list[str] = []
    for line in REPLACED.split(";"):
        types, _, rest = line.strip().partition(" ")
        name, _, values = rest.partition(":")
        if name:
            lines.append(
                f"@%one tensormap.replace.tile.{name}.shared::cta{types} [made], {values.strip()};"
            )
    return "\n".join(lines)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_map_is_made_of_zeros(engine: str) -> None:
    """The box begins in row 6 and column 4: two rows of it are outside and filled with zeros."""
    gpu = wl.Device("h100", engine=engine)
    numbers = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS) + 1
    out = gpu.zeros(BOX, np.float32)
    kernel = gpu.compile(KERNEL.replace("REPLACED", replaced()), "ptx")["k"]
    kernel[1, 32](gpu.to_device(numbers), gpu.zeros(16, np.uint64), out, 0)
    expected = np.zeros(BOX, np.float32)
    expected[:2] = numbers[6:, 4:12]
    assert np.array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_other_bytes_are_no_map(engine: str) -> None:
    gpu = wl.Device("h100", engine=engine)
    kernel = gpu.compile(KERNEL.replace("REPLACED", replaced()), "ptx")["k"]
    with pytest.raises(MemoryFault, match="is not the address of a tensor map"):
        kernel[1, 32](gpu.zeros(128, np.float32), gpu.zeros(16, np.uint64), gpu.zeros(32), 1)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_stride_is_a_multiple_of_16_bytes(engine: str) -> None:
    """cuda.h, cuTensorMapEncodeTiled: "Each stride in globalStrides must be a multiple of 16"."""
    gpu = wl.Device("h100", engine=engine)
    wrong = replaced().replace(f"0, {4 * COLUMNS};", "0, 26;")
    kernel = gpu.compile(KERNEL.replace("REPLACED", wrong), "ptx")["k"]
    with pytest.raises(MemoryFault, match="a stride of 26 bytes is not a multiple of 16"):
        kernel[1, 32](gpu.zeros(128, np.float32), gpu.zeros(16, np.uint64), gpu.zeros(32), 0)
