"""Tests traces of machine code in Accel-Sim's format: writing, reading, timing."""

from __future__ import annotations

import lzma
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.core.errors import LaunchError, WarploomError
from warploom.host.run import Run
from warploom.timing.accelsim.files import TracedBlock, kernel_files, read_kernel
from warploom.timing.accelsim.lines import TracedInstruction, parse_line, width_of

TRACE = """-kernel name = by_hand
-kernel id = 1
-grid dim = (2,1,1)
-block dim = (40,1,1)
-shmem = 0
-nregs = 16
-binary version = 75
-cuda stream id = 0
-shmem base_addr = 0x00007f1f00000000
-local mem base_addr = 0x00007f1f02000000
-nvbit version = 1.5.5
-accelsim tracer version = 3

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width

#BEGIN_TB

thread block = 0,0,0

warp = 0
insts = 3
0000 ffffffff 1 R2 MOV 0 0
0010 ffffffff 1 R4 LDG.E.64.SYS 1 R2 8 1 0x7f2000000000 8
0020 ffffffff 0 EXIT 0 0

warp = 1
insts = 3
0000 000000ff 1 R2 MOV 0 0
0010 00000005 1 R4 LDG.E.64.SYS 1 R2 8 0 0x7f2000000100 0x7f2000000200
0020 000000ff 0 EXIT 0 0

#END_TB
#BEGIN_TB

thread block = 1,0,0

warp = 0
insts = 3
0000 ffffffff 1 R2 MOV 0 0
0010 00000111 1 R4 LDG.E.64.SYS 1 R2 8 2 0x7f2000000400 64 -32
0020 ffffffff 0 EXIT 0 0

warp = 1
insts = 3
0000 000000ff 1 R2 MOV 0 0
0010 00000000 1 R4 LDG.E.64.SYS 1 R2 8 1 0x0 0
0020 000000ff 0 EXIT 0 0

#END_TB
"""
"""As the parser of Accel-Sim takes it: addresses in each of its modes."""


def blocks_of(path: Path) -> list[TracedBlock]:
    return list(read_kernel(path)[1])


@pytest.mark.parametrize("suffix", [".traceg", ".traceg.xz"])
def test_handwritten_trace_is_parsed(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"kernel-1{suffix}"
    packed = TRACE.encode() if suffix == ".traceg" else lzma.compress(TRACE.encode())
    file.write_bytes(packed)
    (tmp_path / "kernelslist.g").write_text(
        f"MemcpyHtoD,0x7f2000000000,1024\n{file.name}\n", "utf-8"
    )
    [kernel] = wl.read_accelsim(tmp_path)
    assert (kernel.head.name, kernel.head.grid, kernel.head.block) == (
        "by_hand",
        (2, 1, 1),
        (40, 1, 1),
    )
    assert (kernel.head.registers, kernel.head.binary) == (16, 75)
    first, second = blocks_of(file)
    assert (first.index, second.index) == ((0, 0, 0), (1, 0, 0))
    start = 0x7F2000000000
    loads = [warps[warp][1] for warps in (first.warps, second.warps) for warp in (0, 1)]
    assert [one.addresses for one in loads] == [
        tuple(start + 8 * lane for lane in range(32)),
        (start + 0x100, start + 0x200),
        (start + 0x400, start + 0x440, start + 0x420),
        (),
    ]
    assert loads[0] == TracedInstruction(
        16, 0xFFFFFFFF, (4,), "LDG.E.64.SYS", (2,), 8, loads[0].addresses
    )


def test_handwritten_trace_has_expected_cycles(tmp_path: Path) -> None:
    """Warps load 8, 2, 3 and no sectors of 32 bytes."""
    file = tmp_path / "kernel-1.traceg"
    file.write_text(TRACE, "utf-8")
    [kernel] = wl.read_accelsim(file)
    timing = kernel.time("rtx-2080-ti")
    assert timing.instructions == 12
    assert timing.dram_read_bytes == (8 + 2 + 3) * 32
    assert timing.cycles > timing.spec.latency_dram
    assert timing.cycles == kernel.time(workers=2).cycles  # 7.5 is that of the trace
    assert "0010:LDG.E.64.SYS" in timing.by_line()


def test_lines_round_trip() -> None:
    for text in (
        "0000 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0",
        "0160 b6db6db6 1 R5 LDS.U 1 R5 4 2 0xf8" + 20 * " -4",
        "0160 00000ff0 1 R5 LDG.E.U8 1 R5 1 1 0xf8 -4",
        "0250 00000000 0 BRA 0 0",
    ):
        assert str(parse_line(text)) == text
    lined = parse_line("31 0 0 3 77 0000 ffffffff 1 R1 MOV 0 0", has_line=True, has_position=True)
    assert str(lined) == "0000 ffffffff 1 R1 MOV 0 0"
    widths = {"LDG.E.128.SYS": 16, "LDG.E.U8": 1, "LDS.S16": 2, "STG.E": 4}
    assert {opcode: width_of(opcode) for opcode in widths} == widths


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (("-nregs = 16\n", ""), "does not have a valid kernel trace header: 'nregs'"),
        (("R4 LDG.E.64.SYS 1", "LDG 1"), "is not a trace instruction"),
        (("warp = 1", "warp = 7"), "has warps"),
        (("#BEGIN_TB\n\nthread block = 1,0,0", "#"), "outside a block"),
        (("thread block = 1,0,0", "thread block = 1,0"), "1.traceg .*'thread block = 1,0'"),
        (("warp = 1", "warp = 1,2"), "1.traceg .*'warp = 1,2'"),
        (("LDG.E.64.SYS", "UBLKCP"), "is a bulk copy"),
        (("(2,1,1)", "(3,1,1)"), "has 2 blocks, but the grid has 3"),
    ],
)
def test_damaged_trace_raises(tmp_path: Path, damage: tuple[str, str], error: str) -> None:
    file = tmp_path / "kernel-1.traceg"
    file.write_text(TRACE.replace(*damage), "utf-8")
    with pytest.raises(WarploomError, match=error):
        wl.read_accelsim(file)[0].time("rtx-2080-ti")


def test_file_that_is_no_trace_raises(tmp_path: Path) -> None:
    with pytest.raises(WarploomError, match="cannot be read: No such file"):
        wl.read_accelsim(tmp_path)
    (tmp_path / "kernel-1.traceg").write_text(
        TRACE.replace("-nregs = 16", "-nregs = 1600"), "utf-8"
    )
    with pytest.raises(LaunchError, match="no block of by_hand fits"):
        wl.read_accelsim(tmp_path / "kernel-1.traceg")[0].time("rtx-2080-ti")


SOURCE = """extern "C" __global__ void parted(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < (i & 3); k++) sum += x[32 * k + i];
    if (i < n) y[2 * i] = sum;
}
"""
BLOCKS, THREADS = 3, 64


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run, int]:
    """Returns the folder of a launch's trace, the launch, and the address of its output."""
    folder = tmp_path_factory.mktemp("trace")
    gpu = wl.Device("rtx-2080-ti", record=True)
    x, y = gpu.zeros(1024, np.float32), gpu.zeros(1024, np.float32)
    run = gpu.compile(SOURCE)["parted"][BLOCKS, THREADS].write_accelsim(folder, 150, x, y)
    return folder, run, y.address


@NEEDS_PTXAS
def test_launch_is_written_as_machine_code(written: tuple[Path, Run, int]) -> None:
    folder, run, _ = written
    [file] = kernel_files(folder)
    entries = {made.offset: made.opcode for made in run.machine.matching.listing.instructions}
    blocks = blocks_of(file)
    made = [one for block in blocks for warp in block.warps.values() for one in warp]
    assert all(entries[one.pc] == one.opcode for one in made)
    # Each warp goes three times round the loop; one of six has no thread that stores.
    count = Counter(one.opcode.partition(".")[0] for one in made)
    assert (count["LDG"], count["FADD"], count["STG"]) == (6 * 3, 6 * 3, 5)
    assert [block.index for block in blocks] == [(x, 0, 0) for x in range(BLOCKS)]
    assert all(set(block.warps) == {0, 1} for block in blocks)


@NEEDS_PTXAS
def test_written_accesses_have_lanes_and_addresses_of_launch(
    written: tuple[Path, Run, int],
) -> None:
    """Thread i loads as many times as its two lowest bits; threads below 150 store with a stride of
    8 bytes."""
    folder, _, output = written
    [file] = kernel_files(folder)
    for number, block in enumerate(blocks_of(file)):
        for warp, made in block.warps.items():
            threads = [number * THREADS + 32 * warp + lane for lane in range(32)]
            loads = [one.mask for one in made if one.opcode.startswith("LDG")]
            turns = [[(thread & 3) > turn for thread in threads] for turn in range(3)]
            assert loads == [sum(on << lane for lane, on in enumerate(turn)) for turn in turns]
            stores = [a for one in made if one.opcode.startswith("STG") for a in one.addresses]
            assert stores == [output + 8 * thread for thread in threads if thread < 150]
            gone = 0
            for one in made:
                assert one.mask & gone == 0
                gone |= one.mask if one.opcode == "EXIT" else 0
            assert gone == (1 << 32) - 1


@NEEDS_PTXAS
def test_written_trace_takes_time_of_launch(
    written: tuple[Path, Run, int],
) -> None:
    folder, _, _ = written
    [kernel] = wl.read_accelsim(folder)
    gpu = wl.Device("rtx-2080-ti", record=True)
    x, y = gpu.zeros(1024, np.float32), gpu.zeros(1024, np.float32)
    launch = gpu.compile(SOURCE)["parted"][BLOCKS, THREADS](150, x, y).time(code="machine")
    timing = kernel.time()
    assert timing.instructions == launch.instructions
    assert timing.l1_hit_rate == launch.l1_hit_rate
    assert timing.dram_bytes == launch.dram_bytes
    assert 0.8 < timing.cycles / launch.cycles < 1.25


@NEEDS_PTXAS
def test_second_launch_is_appended(tmp_path: Path) -> None:
    gpu = wl.Device("rtx-2080-ti")
    launcher = gpu.compile(SOURCE)["parted"][1, 32]
    x = gpu.zeros(1024, np.float32)
    for _ in range(2):
        launcher.write_accelsim(tmp_path, 32, x, x)
    assert [path.name for path in kernel_files(tmp_path)] == ["kernel-1.traceg", "kernel-2.traceg"]
    assert [kernel.head.number for kernel in wl.read_accelsim(tmp_path)] == [1, 2]


def test_device_without_machine_code_is_refused(tmp_path: Path) -> None:
    gpu = wl.Device("gtx-1080")
    x = gpu.zeros(1024, np.float32)
    with pytest.raises(WarploomError, match="cannot trace machine code"):
        gpu.compile(SOURCE)["parted"][1, 32].write_accelsim(tmp_path, 32, x, x)


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernel-1.traceg.xz"
    file.write_bytes(lzma.compress(TRACE.encode() + bytes(64 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(WarploomError, match="a line has more than 1,048,576 characters"):
            blocks_of(file)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    file.write_bytes(lzma.compress(TRACE.encode())[:-40])
    with pytest.raises(WarploomError, match="cannot be read as a trace"):
        blocks_of(file)
