"""The Python API from end to end: load, launch, results, counters, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warploom as wl

SAXPY = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<5>; .reg .b64 %rd<6>;
  .loc 1 2 1
  ld.param.u32 %r1, [n];
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  .loc 1 3 1
  setp.ge.s32 %p, %r5, %r1;
  @%p bra DONE;
  .loc 1 4 1
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  fma.rn.f32 %f4, %f2, %f1, %f3;
  st.global.f32 [%rd5], %f4;
DONE:
  .loc 1 5 1
  ret;
  .file 1 "saxpy.cu"
}
"""

TABLE = """
.version 8.0
.target sm_75
.address_size 64
.const .align 4 .b32 table[4] = {10, 20, 30, 40};
.global .align 4 .u32 counter = 5;
.visible .entry read(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd3, table;
  add.s64 %rd3, %rd3, %rd2;
  ld.const.u32 %r2, [%rd3];
  ld.global.u32 %r3, [counter];
  add.u32 %r2, %r2, %r3;
  add.s64 %rd4, %rd1, %rd2;
  st.global.u32 [%rd4], %r2;
  ret;
}
.visible .entry bounded(.param .u64 out) .maxntid 64, 1, 1 { ret; }
.visible .entry exact(.param .u64 out) .reqntid 8, 4 { ret; }
"""


@pytest.fixture(scope="module", params=["reference", "compiled"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    return wl.Device("rtx-2080-ti", engine=request.param)


@pytest.fixture(scope="module")
def saxpy(gpu: wl.Device) -> wl.Kernel:
    return gpu.compile(SAXPY, "ptx")["saxpy"]


def test_a_launch_computes_and_counts(gpu: wl.Device, saxpy: wl.Kernel) -> None:
    n = 1000
    x = np.random.default_rng(1).random(n, np.float32)
    y = gpu.to_device(np.ones(n, np.float32))
    run = saxpy[4, 256](n, np.float32(2), x, y)
    assert (y.copy_to_host() == 2 * x + 1).all()  # 2x is exact: the sum is rounded once
    counters = run.counters
    # 32 warps; the last one has lanes 992 to 999 below n, and parts there: 8 floats = 1 sector.
    assert (counters.divergent_branches, counters.branches) == (1, 32)
    assert counters.warp_instructions == 32 * 10 + 32 * 7 + 32
    assert counters.global_load_requests == 64
    assert counters.global_load_sectors == 2 * (31 * 4 + 1)
    assert counters.global_store_sectors == 31 * 4 + 1
    assert counters.global_load_bytes_requested == 2 * 4 * n
    assert run.metric("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum") == 32
    lines = counters.by_line()
    assert lines["saxpy.cu:4"].warp_instructions == 32 * 7
    assert lines["saxpy.cu:3"].divergent_branches == 1
    assert sum(line.thread_instructions for line in lines.values()) == counters.thread_instructions


def test_host_arrays_come_back(saxpy: wl.Kernel) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    saxpy[2, 32](64, 0.5, x, y)
    assert (y == x / 2).all()


def test_a_run_describes_its_launch_as_text_and_as_json(gpu: wl.Device, saxpy: wl.Kernel) -> None:
    run = saxpy[(2, 1), (32, 1, 1)](64, 1.0, np.ones(64, np.float32), np.ones(64, np.float32))
    output = json.loads(run.to_json())
    assert (output["kernel"], output["grid"], output["block"]) == ("saxpy", [2, 1, 1], [32, 1, 1])
    assert output["device"] == "GeForce RTX 2080 Ti"
    assert output["engine"] == gpu.engine
    assert output["counters"]["global_load_sectors"] == 16
    assert output["lines"]["saxpy.cu:4"]["warp_instructions"] == 14
    assert run.seconds > 0
    assert "Memory Workload Analysis" in run.report()


def test_a_fault_names_the_place_and_leaves_the_rest_alone(
    gpu: wl.Device, saxpy: wl.Kernel
) -> None:
    x, y = gpu.to_device(np.ones(100, np.float32), "x"), gpu.zeros(100, np.float32, "y")
    other = gpu.to_device(np.full(100, 7, np.int32))
    with pytest.raises(wl.MemoryFault) as caught:
        saxpy[4, 32](128, 1.0, x, y)
    fault = caught.value
    assert (fault.line, fault.block, fault.thread) == ("saxpy.cu:4", (3, 0, 0), (4, 0, 0))
    assert (fault.kind, fault.size, fault.address) == ("out of bounds", 4, x.address + 400)
    assert fault.nearest is not None
    assert fault.nearest.name == "x"
    assert (other.copy_to_host() == 7).all()
    saxpy[4, 32](100, 1.0, x, y)
    assert (y.copy_to_host()[:96] == 2).all()  # the blocks before the fault had already added once
    assert (y.copy_to_host()[96:] == 1).all()


def test_variables_of_the_module_have_their_values(gpu: wl.Device) -> None:
    out = gpu.zeros(4, np.uint32)
    run = gpu.compile(TABLE, "ptx")["read"][1, 4](out)
    assert out.copy_to_host().tolist() == [15, 25, 35, 45]
    assert run.counters.constant_load_transactions == 4


def test_instructions_can_be_bounded(saxpy: wl.Kernel) -> None:
    x = np.ones(64, np.float32)
    with pytest.raises(wl.InstructionLimit):
        saxpy[2, 32](64, 1.0, x, x.copy(), max_instructions=5)


def test_streams_keep_their_order_and_their_errors(gpu: wl.Device, saxpy: wl.Kernel) -> None:
    stream = gpu.stream()
    x, y = gpu.to_device(np.ones(64, np.float32)), gpu.zeros(64, np.float32)
    runs = [saxpy[2, 32, stream](64, 1.0, x, y) for _ in range(5)]
    stream.synchronize()
    assert (y.copy_to_host() == 5).all()
    assert all(run.counters.global_store_requests == 2 for run in runs)
    bad = saxpy[3, 32, stream](96, 1.0, x, y)
    good = saxpy[2, 32, stream](64, 1.0, x, y)
    with pytest.raises(wl.MemoryFault):
        stream.synchronize()
    stream.synchronize()
    assert good.counters.global_store_requests == 2
    with pytest.raises(wl.MemoryFault):
        _ = bad.counters


# ---- what is refused: the engine takes no part in it --------------------------------------------


@pytest.fixture(scope="module")
def plain() -> wl.Device:
    return wl.Device(cc="7.5")


def test_launch_configurations_that_make_no_sense(plain: wl.Device) -> None:
    kernel = plain.compile(SAXPY, "ptx")["saxpy"]
    x = np.ones(4, np.float32)
    for grid, block, message in (
        (0, 32, "grid of 0 x 1 x 1"),
        (1, 2048, "its x dimension is 2048"),
        ((1, 1, 1, 1), 32, "grid of a launch must be an integer or a tuple"),
        (1, 2.5, "block of a launch must be an integer"),
        (1, (), "block of a launch"),
    ):
        with pytest.raises(wl.LaunchError, match=message):
            kernel[grid, block](1, 1.0, x, x)
    with pytest.raises(wl.LaunchError, match="takes a grid, a block"):
        kernel[1]
    with pytest.raises(wl.LaunchError, match="third value must be a stream"):
        kernel[1, 32, 4096]
    with pytest.raises(wl.LaunchError, match="invalid shared memory size: -1 bytes"):
        kernel[1, 32, None, -1]
    with pytest.raises(wl.LaunchError, match="shared memory") as caught:
        kernel[1, 32, None, 65537](1, 1.0, x, x)
    assert (caught.value.resource, caught.value.limit) == ("shared", 65536)


def test_what_the_kernel_demands_of_a_block_is_checked(plain: wl.Device) -> None:
    module = plain.compile(TABLE, "ptx")
    with pytest.raises(wl.LaunchError, match="at most 64"):
        module["bounded"][1, 65](0)
    with pytest.raises(wl.LaunchError, match="exactly"):
        module["exact"][1, 32](0)


def test_names_that_do_not_exist(plain: wl.Device) -> None:
    with pytest.raises(wl.LaunchError, match=r"kernel\.ptx has no kernel named sax.*saxpy"):
        plain.compile(SAXPY, "ptx")["sax"]
    known = "'cuda', 'hip', 'ptx', 'opencl'"
    with pytest.raises(wl.CompileError, match=f"language 'sycl' is not one of {known}"):
        plain.compile(SAXPY, "sycl")
    with pytest.raises(wl.CompileError, match="options have no effect"):
        plain.compile(SAXPY, "ptx", ["-O3"])
    with pytest.raises(wl.WarploomError, match=r"engine takes .*not 'fast'"):
        wl.Device(engine="fast")


def test_files_that_cannot_be_used(plain: wl.Device, tmp_path: Path) -> None:
    binary, cut, odd = tmp_path / "k.ptx", tmp_path / "cut.ptx", tmp_path / "k.cubin"
    binary.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe")
    cut.write_text(SAXPY[: SAXPY.index("mad.lo")], "utf-8")
    odd.write_bytes(b"")
    with pytest.raises(wl.CompileError, match=r"k\.ptx is an ELF binary.*cuobjdump"):
        plain.load(binary)
    with pytest.raises(wl.PtxSyntaxError, match=r"cut\.ptx:15:"):
        plain.load(cut)
    with pytest.raises(wl.CompileError, match=r"\.cubin"):
        plain.load(odd)
    with pytest.raises(wl.WarploomError, match="No such file"):
        plain.load(tmp_path / "none.ptx")


def test_buffers_know_their_shape_and_give_their_memory_back(plain: wl.Device) -> None:
    host = np.arange(6, dtype=np.int16).reshape(2, 3)
    buffer = plain.to_device(host)
    assert (buffer.shape, buffer.dtype, buffer.nbytes) == ((2, 3), np.int16, 12)
    assert (buffer.copy_to_host() == host).all()
    found = plain.memory.find(buffer.address)
    assert found is not None
    assert found.size == 12
    address = buffer.address
    del buffer
    assert plain.memory.find(address) is None
    empty = plain.empty((3, 4), np.float32)
    assert empty.copy_to_host().shape == (3, 4)
    empty.free()
    empty.free()
    with pytest.raises(wl.WarploomError, match="freed"):
        empty.copy_to_host()
    with pytest.raises(wl.LaunchError, match="Python objects"):
        plain.to_device(np.array([{}], object))


def test_cuda_files_load_by_suffix_and_cpp_names(plain: wl.Device, tmp_path: Path) -> None:
    file = tmp_path / "twice.cu"
    file.write_text("__global__ void twice(int *x) { x[threadIdx.x] *= N; }\n", "utf-8")
    module = plain.load(file, ["-DN=2"])
    assert module.kernels == ("_Z5twicePi",)
    x = np.arange(32, dtype=np.int32)
    run = module["twice"][1, 32](x)
    assert (x == 2 * np.arange(32)).all()
    assert list(run.counters.by_line()) == [f"{file}:1"]


def test_grids_of_a_kernel_that_names_its_clusters() -> None:
    text = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry two() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }
.visible .entry one() .explicitcluster .reqnctapercluster 1, 1, 1 { ret; }
"""
    module = wl.Device("h100").compile(text, "ptx")
    module["one"][2, 32]()
    module["two"][2, 32]()
    with pytest.raises(wl.LaunchError, match="cannot be divided into clusters"):
        module["two"][3, 32]()
