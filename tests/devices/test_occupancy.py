"""Occupancy against two statements that share no code with it: a plain filling of an SM, with the
limits written out here, and NVIDIA's own header where a C compiler can build it."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.core.errors import LaunchError
from warploom.devices.catalog import find_device
from warploom.devices.gains import gains
from warploom.devices.launches import check_registers
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.devices.spec import DeviceSpec

KIB = 1024

# CUDA Occupancy Calculator (1.0 to 7.0) and CUDA C++ Programming Guide: threads a block; blocks,
# warps and Ki registers an SM; Ki registers a block; registers a thread; KiB of shared memory an SM
# and a block; its unit, and what each block leaves to the system.
LIMITS: dict[str, tuple[int, ...]] = {
    "1.0": (512, 8, 24, 8, 8, 124, 16, 16, 512, 0),
    "1.1": (512, 8, 24, 8, 8, 124, 16, 16, 512, 0),
    "1.2": (512, 8, 32, 16, 16, 124, 16, 16, 512, 0),
    "1.3": (512, 8, 32, 16, 16, 124, 16, 16, 512, 0),
    "2.0": (1024, 8, 48, 32, 32, 63, 48, 48, 128, 0),
    "2.1": (1024, 8, 48, 32, 32, 63, 48, 48, 128, 0),
    "3.0": (1024, 16, 64, 64, 64, 63, 48, 48, 256, 0),
    "3.5": (1024, 16, 64, 64, 64, 255, 48, 48, 256, 0),
    "3.7": (1024, 16, 64, 128, 64, 255, 112, 48, 256, 0),
    "5.0": (1024, 32, 64, 64, 64, 255, 64, 48, 256, 0),
    "5.2": (1024, 32, 64, 64, 64, 255, 96, 48, 256, 0),
    "6.0": (1024, 32, 64, 64, 64, 255, 64, 48, 256, 0),
    "6.1": (1024, 32, 64, 64, 64, 255, 96, 48, 256, 0),
    "7.0": (1024, 32, 64, 64, 64, 255, 96, 96, 256, 0),
    "7.5": (1024, 16, 32, 64, 64, 255, 64, 64, 256, 0),
    "8.0": (1024, 32, 64, 64, 64, 255, 164, 163, 128, 1),
    "8.6": (1024, 16, 48, 64, 64, 255, 100, 99, 128, 1),
    "8.9": (1024, 24, 48, 64, 64, 255, 100, 99, 128, 1),
    "9.0": (1024, 32, 64, 64, 64, 255, 228, 227, 128, 1),
    "10.0": (1024, 32, 64, 64, 64, 255, 228, 227, 128, 1),
    "12.0": (1024, 24, 48, 64, 64, 255, 100, 99, 128, 1),
}


def filled(cc: str, demand: Demand) -> int:
    """Put blocks on an SM, one after the other, until one does not fit.

    Registers: 1.x takes them for pairs of warps, in units of 256 (1.0, 1.1) or 512 a block. Later a
    warp takes units of 64 (2.x; 128 for eight counts) or 256 from a part of the SM: two parts on
    2.x and 6.0, else four, and a block passes only if it would fit with all parts equally loaded,
    on 6.0 four parts, as on the other devices of its family.
    """
    threads, max_blocks, max_warps, sm, block, each, shared_sm, shared_block, unit, kept = LIMITS[
        cc
    ]
    if demand.threads > threads or demand.registers > each:
        return 0
    if demand.shared_bytes > shared_block * KIB:
        return 0
    warps = (demand.threads + 31) // 32
    shared = rounded(demand.shared_bytes + kept * KIB, unit)
    early = cc.startswith("1.")
    parts = 1 if early else 2 if cc in ("2.0", "2.1", "6.0") else 4
    if early:
        registers = rounded(
            rounded(warps, 2) * demand.registers * 32, 256 if cc in ("1.0", "1.1") else 512
        )
        free = [sm * KIB // registers] if registers else [max_blocks]
        per_block = 1
    else:
        special = cc.startswith("2.") and demand.registers in (21, 22, 29, 30, 37, 38, 45, 46)
        granule = 256 if cc[0] != "2" else 128 if special else 64
        warp = rounded(demand.registers * 32, granule)
        if warp * rounded(warps, 4 if cc == "6.0" else parts) > block * KIB:
            return 0
        free = [sm * KIB // parts // warp if warp else max_warps] * parts
        per_block = warps
    placed = used_shared = used_warps = 0
    while (
        placed < max_blocks
        and used_warps + warps <= max_warps
        and used_shared + shared <= shared_sm * KIB
        and sum(free) >= per_block
    ):
        for _ in range(per_block):
            free[free.index(max(free))] -= 1
        placed, used_warps, used_shared = placed + 1, used_warps + warps, used_shared + shared
    return placed


def rounded(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit


def demands(max_shared: int = 240 * KIB) -> st.SearchStrategy[Demand]:
    return st.builds(Demand, st.integers(1, 1024), st.integers(0, 255), st.integers(0, max_shared))


@pytest.mark.parametrize("cc", LIMITS)
@settings(max_examples=examples(50, nightly=150))
@given(demand=st.one_of(demands(), demands(16 * KIB), demands(0)))
def test_it_is_what_a_plain_filling_finds(cc: str, demand: Demand) -> None:
    found = occupancy_of(find_device(cc=cc), demand)
    assert found.active_blocks == filled(cc, demand)
    assert found.active_warps == found.active_blocks * ((demand.threads + 31) // 32)


@pytest.mark.parametrize("cc", LIMITS)
def test_every_register_count_with_every_number_of_warps(cc: str) -> None:
    spec = find_device(cc=cc)
    for threads in (1, *range(32, 1025, 96), 1024):
        for registers in range(256):
            demand = Demand(threads, registers)
            assert occupancy_of(spec, demand).active_blocks == filled(cc, demand)


# ---- NVIDIA's header ----------------------------------------------------------------------------

WRAPPER = """
#include <cuda_occupancy.h>
int blocks(int major, int minor, const long *p, int threads, int registers, long shared,
           int barriers) {
    cudaOccDeviceProp device = {0};
    cudaOccFuncAttributes kernel = {0};
    cudaOccDeviceState state = {0};
    cudaOccResult result;
    device.computeMajor = major; device.computeMinor = minor;
    device.maxThreadsPerBlock = p[0]; device.maxThreadsPerMultiprocessor = p[1];
    device.regsPerBlock = p[2]; device.regsPerMultiprocessor = p[3]; device.warpSize = 32;
    device.sharedMemPerBlock = p[4]; device.sharedMemPerMultiprocessor = p[5];
    device.numSms = 1; device.sharedMemPerBlockOptin = p[6];
    device.reservedSharedMemPerBlock = p[7];
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; kernel.maxDynamicSharedSizeBytes = shared;
    kernel.numBlockBarriers = barriers;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared))
        return -1;
    return result.activeBlocksPerMultiprocessor;
}
"""

Header = Callable[[DeviceSpec, Demand], int]


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Header:
    """NVIDIA's answer."""
    compiler = shutil.which("cc")
    try:
        roots = list(importlib.import_module("nvidia.cu13").__path__)
    except ImportError:
        roots = []
    found = [Path(r) / "include" for r in roots if (Path(r) / "include/cuda_occupancy.h").exists()]
    if compiler is None or not found:
        pytest.skip("needs a C compiler and the headers of nvidia-cuda-runtime")
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "wrapper.c").write_text(WRAPPER, "utf-8")
    command = [
        compiler,
        "-O1",
        "-shared",
        "-fPIC",
        "-w",
        f"-I{found[0]}",
        "wrapper.c",
        "-o",
        "w.so",
    ]
    subprocess.run(command, cwd=folder, check=True)
    blocks = ctypes.CDLL(str(folder / "w.so")).blocks
    blocks.argtypes = [
        *(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_long)),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int),
    ]

    def ask(spec: DeviceSpec, demand: Demand) -> int:
        properties = (ctypes.c_long * 8)(
            spec.max_threads_per_block,
            spec.max_threads_per_sm,
            spec.registers_per_block,
            spec.registers_per_sm,
            spec.shared_bytes_per_block,
            spec.shared_bytes_per_sm,
            spec.shared_bytes_per_block_optin,
            spec.shared_reserved_per_block,
        )
        wanted = (demand.threads, demand.registers, demand.shared_bytes, demand.barriers)
        return int(blocks(*spec.compute_capability, properties, *wanted))

    return ask


HEADER_KNOWS = ["3.0", "3.2", "3.5", "3.7", "5.0", "5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2"]
HEADER_KNOWS += ["7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "10.7", "11.0"]
HEADER_KNOWS += ["12.0", "12.1"]


@pytest.mark.parametrize("cc", HEADER_KNOWS)
def test_it_is_what_nvidias_header_says(cc: str, header: Header) -> None:
    spec = find_device(cc=cc)
    most = spec.max_registers_per_thread  # the header does not know the 63 of 3.0

    @settings(max_examples=examples(50, nightly=150))
    @given(
        st.builds(
            Demand,
            st.integers(1, 1024),
            st.integers(0, most),
            st.one_of(st.integers(0, 240 * KIB), st.integers(0, 8 * KIB)),
            st.integers(0, 16),
        )
    )
    def agree(demand: Demand) -> None:
        assert occupancy_of(spec, demand).active_blocks == header(spec, demand)

    agree()


# ---- by hand ------------------------------------------------------------------------------------


def test_sixty_four_registers_are_half_an_sm() -> None:
    """64 Ki registers / 64 a thread = 1024 threads, of 2048 that could be there."""
    for cc in ("3.5", "5.2", "7.0", "8.0", "9.0"):
        found = occupancy_of(find_device(cc=cc), Demand(256, 64))
        assert found.active_warps * 32 == 1024
        assert found.fraction == 0.5
        assert found.limiters == ("registers",)


def test_limiters_are_all_that_bind() -> None:
    spec = find_device(cc="9.0")
    assert occupancy_of(spec, Demand(1024, 32)).limiters == ("warps", "registers")
    assert occupancy_of(spec, Demand(32, 16)).limiters == ("blocks",)
    assert occupancy_of(spec, Demand(64, 16, 100 * KIB)).limiters == ("shared",)
    assert occupancy_of(spec, Demand(64, 16, barriers=16)).limiters == ("barriers",)
    assert occupancy_of(spec, Demand(64, 16, barriers=17)).active_blocks == 0


def test_the_carveout_is_the_least_that_holds_the_blocks() -> None:
    """Two blocks of 1024 threads with 40 KiB and the system's 1 KiB each: 82, so 100 KiB."""
    found = occupancy_of(find_device(cc="9.0"), Demand(1024, 32, 40 * KIB))
    assert found.active_blocks == 2
    assert found.shared_carveout == 100 * KIB


def test_gains_are_the_nearest_steps() -> None:
    """40 registers make 1,280 a warp: 51 warps, cut to 48. With 256 threads, 6 blocks of 8 warps;
    the next step, 7 blocks, needs 56 warps: at most 1,170 registers each, so 1,024, or 32 each."""
    spec = find_device(cc="9.0")
    found = {gain.resource: gain for gain in gains(spec, Demand(256, 40))}
    assert found["registers"].after == 32
    assert found["registers"].occupancy.fraction == 1.0
    assert "shared_bytes" not in found
    assert gains(spec, Demand(256, 32)) == ()
    # 60 KiB + 1 KiB: three blocks of 228 KiB; four need 57 KiB each, 56 of them the kernel's.
    shared = {gain.resource: gain for gain in gains(spec, Demand(256, 32, 60 * KIB))}
    assert shared["shared_bytes"].after == 56 * KIB
    assert shared["threads"].after == 1024  # two of 32 warps are 64; three of 21 are 63


def test_registers_that_no_block_can_have_are_refused() -> None:
    spec = find_device(cc="7.5")
    with pytest.raises(LaunchError, match="1024 threads with 128 registers") as caught:
        check_registers(spec, 1024, 128, "ptxas")
    error = caught.value
    assert (error.resource, error.requested, error.limit) == ("registers", 131072, 65536)
    check_registers(spec, 1024, 64, "ptxas")
    with pytest.raises(LaunchError) as caught:
        check_registers(find_device(cc="2.0"), 32, 64, "ptxas")
    assert (caught.value.resource, caught.value.limit) == ("registers", 63)
