"""Functions of the runtime whose arguments are those of a function of the driver."""

from __future__ import annotations

from warploom.clients.driver.entries import registry as driver
from warploom.clients.runtime.table import entry

ALIKE = (
    *("DeviceGetByPCIBusId", "DeviceGetPCIBusId", "DeviceGetP2PAttribute"),
    *("DeviceGetDefaultMemPool", "DeviceGetMemPool", "DeviceSetMemPool"),
    *("DeviceGetGraphMemAttribute", "DeviceSetGraphMemAttribute", "DeviceGraphMemTrim"),
    *("MemGetDefaultMemPool", "MemGetMemPool", "MemPoolCreate", "MemPoolDestroy", "MemPoolTrimTo"),
    *("MemPoolGetAccess", "MemPoolSetAccess", "MemPoolGetAttribute", "MemPoolSetAttribute"),
    *("MemRangeGetAttribute", "CtxResetPersistingL2Cache"),
    *("StreamAttachMemAsync", "StreamCopyAttributes", "StreamSetAttribute", "StreamGetId"),
    *("StreamGetDevice", "LaunchHostFunc_v2"),
    *("GraphAddMemAllocNode", "GraphAddMemFreeNode", "GraphMemFreeNodeGetParams"),
    *("GraphChildGraphNodeGetGraph", "GraphEventRecordNodeGetEvent", "GraphEventWaitNodeGetEvent"),
    *("GraphEventRecordNodeSetEvent", "GraphEventWaitNodeSetEvent", "GraphGetId"),
    *("GraphExecChildGraphNodeSetParams", "GraphExecEventRecordNodeSetEvent", "GraphExecGetFlags"),
    *("GraphExecEventWaitNodeSetEvent", "GraphExecGetId", "GraphExecHostNodeSetParams"),
    *("GraphExecMemsetNodeSetParams", "GraphMemsetNodeGetParams", "GraphMemsetNodeSetParams"),
    *("GraphHostNodeGetParams", "GraphHostNodeSetParams", "GraphKernelNodeCopyAttributes"),
    *("GraphKernelNodeGetAttribute", "GraphKernelNodeSetAttribute", "GraphNodeGetContainingGraph"),
    *("GraphNodeGetLocalId", "GraphNodeGetToolsId", "GraphNodeGetEnabled", "GraphNodeSetEnabled"),
    *("LibraryLoadData", "LibraryLoadFromFile", "LibraryUnload", "LibraryGetKernel"),
    *("LibraryGetKernelCount", "LibraryEnumerateKernels", "LibraryGetGlobal", "LibraryGetManaged"),
    *("LogsCurrent", "LogsDumpToFile", "LogsDumpToMemory", "LogsRegisterCallback"),
    "LogsUnregisterCallback",
)
"""Names after `cuda` and `cu`."""

RENAMED = {
    "cudaDeviceFlushGPUDirectRDMAWrites": "cuFlushGPUDirectRDMAWrites",
    "cudaDeviceGetCacheConfig": "cuCtxGetCacheConfig",
    "cudaDeviceGetSharedMemConfig": "cuCtxGetSharedMemConfig",
    "cudaGetDeviceFlags": "cuCtxGetFlags",
    "cudaGraphConditionalHandleCreate_v2": "cuGraphConditionalHandleCreate",
    "cudaHostGetFlags": "cuMemHostGetFlags",
    "cudaMallocFromPoolAsync": "cuMemAllocFromPoolAsync",
    "cudaStreamUpdateCaptureDependencies": "cuStreamUpdateCaptureDependencies_v2",
}

for _runtime, _driver in ({f"cuda{name}": f"cu{name}" for name in ALIKE} | RENAMED).items():
    entry(_runtime)(driver.find(_driver))
