"""Green contexts: the SMs of an A100 in groups, as CUDA documents their sizes."""

from cuda.bindings import driver as cu


def must(answer):
    error, *values = answer
    assert error == cu.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


must(cu.cuInit(0))
must(cu.cuCtxSetCurrent(must(cu.cuDevicePrimaryCtxRetain(0))))
whole = must(cu.cuDeviceGetDevResource(0, cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM))
groups, count, rest = must(cu.cuDevSmResourceSplitByCount(2, whole, 0, 25))
print(whole.sm.smCount, count, [group.sm.smCount for group in groups], rest.sm.smCount, end=" ")
description = must(cu.cuDevResourceGenerateDesc(groups[:1], 1))
flag = cu.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
context = must(cu.cuGreenCtxCreate(description, 0, flag))
stream = must(cu.cuGreenCtxStreamCreate(context, cu.CUstream_flags.CU_STREAM_NON_BLOCKING, 0))
must(cu.cuStreamSynchronize(stream))
kind = cu.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
print(must(cu.cuGreenCtxGetDevResource(context, kind)).sm.smCount, end=" ")
print(cu.cuDevSmResourceSplitByCount(1, whole, 0, 109)[0].name)
