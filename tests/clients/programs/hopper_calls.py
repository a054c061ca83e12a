"""Tensor maps and clusters in the driver API: both blocks of a cluster get a box of a tensor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = Path(__file__).parents[2] / "programs" / "clusters.cu"
RUNTIME = Path(nvrtc.__file__).parents[2] / "nvidia" / "cu13" / "include"


def must(given: tuple) -> object:
    error, *rest = given
    assert int(error) == 0, error
    return rest[0] if len(rest) == 1 else rest


def compiled() -> bytes:
    program = must(nvrtc.nvrtcCreateProgram(SOURCE.read_bytes(), b"clusters.cu", 0, [], []))
    folders = [f"-I{folder}".encode() for folder in (RUNTIME, RUNTIME / "cccl")]
    options = [b"-arch=compute_90a", b"--std=c++17", *folders]
    must(nvrtc.nvrtcCompileProgram(program, len(options), options))
    text = b" " * must(nvrtc.nvrtcGetPTXSize(program))
    must(nvrtc.nvrtcGetPTX(program, text))
    return text


def encoded(address: int, box: tuple[int, int], fill: str = "NONE") -> tuple:
    """A map of a tensor of 64 rows of 48 words."""
    kinds = driver.CUtensorMapDataType, driver.CUtensorMapFloatOOBfill
    return driver.cuTensorMapEncodeTiled(
        kinds[0].CU_TENSOR_MAP_DATA_TYPE_UINT32,
        2,
        address,
        [driver.cuuint64_t(48), driver.cuuint64_t(64)],
        [driver.cuuint64_t(4 * 48)],
        [driver.cuuint32_t(size) for size in box],
        [driver.cuuint32_t(1)] * 2,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        getattr(kinds[1], f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )


def configured(blocks: int, threads: int, cluster: int) -> driver.CUlaunchConfig:
    attribute = driver.CUlaunchAttribute()
    attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x = cluster
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.attrs, config.numAttrs = [attribute], 1
    return config


must(driver.cuInit(0))
must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(must(driver.cuDeviceGet(0))))))
module = must(driver.cuModuleLoadData(compiled()))
data = np.arange(64 * 48, dtype=np.uint32).reshape(64, 48)
tensor, out = must(driver.cuMemAlloc(data.nbytes)), must(driver.cuMemAlloc(4 * 4 * 512))
must(driver.cuMemcpyHtoD(tensor, data.ctypes.data, data.nbytes))
tensor_map = must(encoded(int(tensor), (32, 16)))
words = np.array([int(word) for word in tensor_map.opaque], np.uint64)
place = np.zeros(24, np.uint64)
start = (-place.ctypes.data % 64) // 8
place[start : start + 16] = words
scalars = np.array([int(out)], np.uint64), np.array([8], np.int32), np.array([60], np.int32)
addresses = [place[start:].ctypes.data, *(each.ctypes.data for each in scalars)]
pointers = np.array(addresses, np.uint64)
function = must(driver.cuModuleGetFunction(module, b"shared_box"))
must(driver.cuLaunchKernelEx(configured(4, 64, 2), function, pointers.ctypes.data, 0))
must(driver.cuCtxSynchronize())
found = np.zeros((4, 16, 32), np.uint32)
must(driver.cuMemcpyDtoH(found.ctypes.data, out, found.nbytes))
expected = np.zeros((16, 32), np.uint32)
expected[:4] = data[60:, 8:40]
print((found == expected).all())
refused = encoded(int(tensor), (32, 300)), encoded(int(tensor), (32, 8), "NAN_REQUEST_ZERO_FMA")
print(*(error.name for error, *_ in refused))
ranks, wide = must(driver.cuModuleGetFunction(module, b"ranks")), configured(4, 1024, 4)
print(
    must(driver.cuOccupancyMaxActiveClusters(ranks, wide)),
    must(driver.cuOccupancyMaxPotentialClusterSize(ranks, wide)),
)
