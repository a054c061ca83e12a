"""Which devices a program runs on: by its instructions, or strictly by its `.target`."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.isa.spec import decode
from warploom.isa.targets import needed

COPY = """
extern "C" __global__ void copy(float* out, const float* in) {
    out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void shuffle(int* out) {
    out[threadIdx.x] = __shfl_xor_sync(~0u, (int)threadIdx.x, 1);
}
extern "C" __global__ void triple(double* out) { out[threadIdx.x] *= 3.0; }
extern "C" __global__ void add(double* out) { atomicAdd(out, 1.0); }
"""


# PTX ISA, "Target ISA Notes" of each instruction.
@pytest.mark.parametrize(
    ("opcode", "cc"),
    [
        ("add.s32", (1, 0)),
        ("ld.global.f32", (1, 0)),
        ("atom.global.add.u32", (1, 1)),
        ("atom.shared.add.u32", (1, 2)),
        ("add.f64", (1, 3)),
        ("ld.f32", (2, 0)),  # a generic address
        ("fma.rn.f32", (2, 0)),
        ("popc.b32", (2, 0)),
        ("atom.global.add.f32", (2, 0)),
        ("shfl.sync.bfly.b32", (3, 0)),
        ("shf.l.wrap.b32", (3, 2)),
        ("ld.global.nc.f32", (3, 2)),
        ("lop3.b32", (5, 0)),
        ("atom.global.add.f64", (6, 0)),
        ("st.release.gpu.global.u32", (7, 0)),
        ("tanh.approx.f32", (7, 5)),
        ("cvta.to.global.u64", (1, 0)),  # changes nothing where there are no generic addresses
    ],
)
def test_what_brought_an_instruction(opcode: str, cc: tuple[int, int]) -> None:
    assert needed(decode(opcode)) == cc


def test_old_devices_run_what_they_have() -> None:
    """NVRTC compiles for 7.5 and later; what it makes of a copy every device has."""
    gpu = wl.Device("8800-gtx")
    out, data = gpu.zeros(32, np.float32), np.arange(32, dtype=np.float32)
    run = gpu.compile(COPY)["copy"][1, 32](out, data)
    assert np.array_equal(out.copy_to_host(), data)
    assert "The PTX targets sm_" in run.report()


@pytest.mark.parametrize(
    ("kernel", "cc", "instruction", "brought"),
    [
        ("shuffle", "2.0", "shfl.sync", "3.0"),
        ("triple", "1.1", "f64", "1.3"),
        ("add", "5.2", "f64", "6.0"),
    ],
)
def test_what_a_device_lacks_is_named_with_what_brought_it(
    kernel: str, cc: str, instruction: str, brought: str
) -> None:
    gpu = wl.Device(cc=cc)
    with pytest.raises(wl.UnsupportedInstruction) as caught:
        gpu.compile(COPY)[kernel][1, 32](gpu.zeros(32, np.float64))
    assert instruction in str(caught.value)
    assert f"requires compute capability {brought}" in str(caught.value)
    assert caught.value.span.line > 1


@pytest.mark.parametrize("instruction", ["alloca.u32 %r, 16", "stacksave.u32 %r"])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_memory_of_the_stack_came_with_5_2(instruction: str, engine: str) -> None:
    """PTX ISA, alloca: "requires sm_52 or higher"; what does it here every device could."""
    source = f""".version 7.3
.target sm_52
.address_size 32
.visible .entry k() {{
.reg .b32 %r;
{instruction};
ret;
}}
"""
    wl.Device(cc="5.2", engine=engine).compile(source, "ptx")["k"][1, 32]()
    with pytest.raises(wl.UnsupportedInstruction, match=r"compute capability 5\.2") as e:
        wl.Device(cc="5.0", engine=engine).compile(source, "ptx")["k"][1, 32]()
    assert e.value.span.line == 6


def test_strictness_refuses_as_a_driver_does() -> None:
    with pytest.raises(wl.CompileError, match=r"compute capability 1\.0.*would reject"):
        wl.Device("8800-gtx", strict_target=True).compile(COPY)
    wl.Device("h100", strict_target=True).compile(COPY)
