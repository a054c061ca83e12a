"""CUDA graphs: captured by cuda.core, and built from nodes by cuda.bindings."""

from __future__ import annotations

import ctypes

import numpy as np
from cuda.bindings import driver
from cuda.core import (
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)
from cuda.core.graph import GraphBuilder, GraphDefinition

CODE = """
extern "C" __global__ void add(int *x, int n) { x[threadIdx.x] += n; }
extern "C" __global__ void join(int *x, const int *y, const int *z)
{
    x[threadIdx.x] = 100 * y[threadIdx.x] + z[threadIdx.x];
}
"""

device = Device()
device.set_current()
module = Program(CODE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
add, join = module.get_kernel("add"), module.get_kernel("join")
config = LaunchConfig(grid=1, block=4)
stream = device.create_stream()
arrays = [LegacyPinnedMemoryResource().allocate(16) for _ in range(3)]
x, y, z = (np.from_dlpack(array).view(np.int32) for array in arrays)
at = [int(array.handle) for array in arrays]


def must(given: tuple) -> object:
    error, *rest = given
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return rest[0] if len(rest) == 1 else rest


def clear() -> None:
    for array in (x, y, z):
        array[:] = 0


def captured() -> None:
    """A chain, launched twice: nothing runs while it is built."""
    clear()
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, add, at[0], np.int32(1))
    launch(builder, config, add, at[0], np.int32(10))
    graph = builder.end_building().complete()
    assert x.tolist() == [0] * 4
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    print("captured", *x.tolist())


def forked() -> None:
    """Two branches, and what waits for both."""
    clear()
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, add, at[1], np.int32(1))
    left, right = builder.split(2)
    launch(left, config, add, at[1], np.int32(1))
    launch(right, config, add, at[2], np.int32(5))
    builder = GraphBuilder.join(left, right)
    launch(builder, config, join, *at)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    print("forked", *x.tolist())


def built() -> None:
    """Nodes by calls: a fill and a copy, then a kernel, then a function of the host. The graph is
    cloned, a node of the clone changed, and an executable updated from it."""
    clear()
    graph = must(driver.cuGraphCreate(0))
    context = must(driver.cuCtxGetCurrent())
    fill = driver.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = at[1], 3, 4, 4, 1
    filled = must(driver.cuGraphAddMemsetNode(graph, [], 0, fill, context))
    source = np.arange(4, dtype=np.int32)
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, source.ctypes.data
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, at[2]
    copy.WidthInBytes, copy.Height, copy.Depth = 16, 1, 1
    copied = must(driver.cuGraphAddMemcpyNode(graph, [], 0, copy, context))
    launched = driver.CUDA_KERNEL_NODE_PARAMS()
    launched.func = int(join.handle)
    launched.gridDimX = launched.gridDimY = launched.gridDimZ = 1
    launched.blockDimX, launched.blockDimY, launched.blockDimZ = 4, 1, 1
    launched.kernelParams = (tuple(at), (ctypes.c_void_p,) * 3)
    joined = must(driver.cuGraphAddKernelNode(graph, [filled, copied], 2, launched))
    seen: list[list[int]] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(x.tolist()))
    call = driver.CUDA_HOST_NODE_PARAMS()
    call.fn = ctypes.cast(callback, ctypes.c_void_p).value
    must(driver.cuGraphAddHostNode(graph, [joined], 1, call))
    nodes, count = must(driver.cuGraphGetNodes(graph, 4))
    _, at_first = must(driver.cuGraphGetRootNodes(graph, 2))
    kinds = [int(must(driver.cuGraphNodeGetType(node))) for node in nodes]
    print("nodes", count, at_first, *kinds)
    runs = must(driver.cuGraphInstantiate(graph, 0))
    assert seen == []
    must(driver.cuGraphLaunch(runs, 0))
    source[:] = 7  # what a copy reads is what is there when the graph is launched
    must(driver.cuGraphLaunch(runs, 0))
    twin = must(driver.cuGraphClone(graph))
    fill.value = 4
    must(driver.cuGraphMemsetNodeSetParams(must(driver.cuGraphNodeFindInClone(filled, twin)), fill))
    must(driver.cuGraphExecUpdate(runs, twin))
    must(driver.cuGraphLaunch(runs, 0))
    print("built", *(one for run in seen for one in run))


def defined() -> None:
    """cuda.core's own way to build a graph: memory of the graph's, a child, a callback, a join."""
    clear()
    seen: list[list[int]] = []
    child = GraphDefinition()
    child.launch(config, add, at[0], np.int32(2)).launch(config, add, at[0], np.int32(3))
    graph = GraphDefinition()
    taken = graph.allocate(16)
    filled = taken.memset(taken.dptr, np.uint32(6), 4).memcpy(at[1], taken.dptr, 16)
    filled.deallocate(taken.dptr)
    embedded = graph.embed(child)
    both = filled.join(embedded).launch(config, add, at[1], np.int32(1))
    both.callback(lambda: seen.append([int(x[0]), int(y[0])]))
    print("defined", len(graph.nodes()), len(graph.edges()), end=" ")
    runs = graph.instantiate()
    for _ in range(2):
        runs.launch(stream)
        stream.sync()
    print(*(one for run in seen for one in run))


def misused() -> None:
    """What captures cannot take, with the error that CUDA documents for each."""
    plain = must(driver.cuStreamCreate(0))
    other = must(driver.cuStreamCreate(0))
    event = must(driver.cuEventCreate(0))
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    codes = [driver.cuStreamEndCapture(plain)[0], driver.cuStreamBeginCapture(0, mode)[0]]
    must(driver.cuStreamBeginCapture(plain, mode))
    codes += [driver.cuStreamBeginCapture(plain, mode)[0]]
    codes += [driver.cuStreamSynchronize(plain)[0]]
    codes += [driver.cuStreamEndCapture(plain)[0]]  # which the synchronization spoilt
    must(driver.cuStreamBeginCapture(plain, mode))
    must(driver.cuEventRecord(event, plain))
    must(driver.cuStreamWaitEvent(other, event, 0))
    must(driver.cuMemsetD8Async(at[0], 1, 1, other))
    codes += [driver.cuStreamEndCapture(plain)[0]]  # nobody waits for the other stream's work
    must(driver.cuStreamBeginCapture(plain, mode))
    codes += [driver.cuMemsetD8Async(at[0], 1, 1, 0)[0]]  # in the legacy stream
    codes += [driver.cuStreamEndCapture(plain)[0]]
    must(driver.cuMemsetD8Async(at[0], 1, 1, plain))
    graph = must(driver.cuGraphCreate(0))
    first, second = (must(driver.cuGraphAddEmptyNode(graph, [], 0)) for _ in range(2))
    must(driver.cuGraphAddDependencies(graph, [first], [second], None, 1))
    codes += [driver.cuGraphAddDependencies(graph, [second], [first], None, 1)[0]]  # in a circle
    runs = must(driver.cuGraphInstantiate(graph, 0))
    must(driver.cuGraphDestroyNode(second))
    codes += [driver.cuGraphExecUpdate(runs, graph)[0], driver.cuGraphLaunch(0, 0)[0]]
    print(*(code.name.removeprefix("CUDA_ERROR_") for code in codes))


for one in (captured, forked, built, defined, misused):
    one()
