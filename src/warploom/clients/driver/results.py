"""The error codes of the driver API that are given here, and which of them stands for what."""

from __future__ import annotations

from enum import IntEnum

from warploom.core.errors import (
    CompileError,
    DeadlockError,
    DeviceAssert,
    InstructionLimit,
    KernelFault,
    LaunchError,
    MemoryFault,
    PtxError,
    WarploomError,
)


class Result(IntEnum):
    """CUresult, whose numbers are those of cudaError_t; the names are without CUDA_ERROR_."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    INVALID_PITCH = 12
    INVALID_SYMBOL = 13
    INVALID_MEMCPY_DIRECTION = 21
    INVALID_DEVICE_FUNCTION = 98
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    INVALID_IMAGE = 200
    INVALID_CONTEXT = 201
    ALREADY_MAPPED = 208
    NO_BINARY_FOR_GPU = 209
    PEER_ACCESS_UNSUPPORTED = 217
    INVALID_PTX = 218
    FILE_NOT_FOUND = 301
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302
    OPERATING_SYSTEM = 304
    INVALID_HANDLE = 400
    ILLEGAL_STATE = 401
    NOT_FOUND = 500
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_OUT_OF_RESOURCES = 701
    LAUNCH_TIMEOUT = 702
    PEER_ACCESS_NOT_ENABLED = 705
    PRIMARY_CONTEXT_ACTIVE = 708
    CONTEXT_IS_DESTROYED = 709
    ASSERT = 710
    HOST_MEMORY_ALREADY_REGISTERED = 712
    HOST_MEMORY_NOT_REGISTERED = 713
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    COOPERATIVE_LAUNCH_TOO_LARGE = 720
    NOT_PERMITTED = 800
    NOT_SUPPORTED = 801
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_INVALIDATED = 901
    STREAM_CAPTURE_MERGE = 902
    STREAM_CAPTURE_UNMATCHED = 903
    STREAM_CAPTURE_UNJOINED = 904
    STREAM_CAPTURE_ISOLATION = 905
    STREAM_CAPTURE_IMPLICIT = 906
    CAPTURED_EVENT = 907
    GRAPH_EXEC_UPDATE_FAILURE = 910
    UNKNOWN = 999


class DriverError(Exception):
    """A call cannot do what it was asked for; `explained` says why where the code does not."""

    def __init__(self, result: Result, explained: str = "") -> None:
        super().__init__(explained or result.name)
        self.result, self.explained = result, explained


STICKY = frozenset(
    {
        Result.ILLEGAL_ADDRESS,
        Result.LAUNCH_TIMEOUT,
        Result.ASSERT,
        Result.MISALIGNED_ADDRESS,
        Result.LAUNCH_FAILED,
    }
)
"""Errors after which CUDA leaves a context unusable: every later call gives them again."""


def result_of(error: WarploomError) -> Result:
    """Returns the code that CUDA documents for what went wrong."""
    match error:
        case MemoryFault():
            misaligned = error.kind == "misaligned"
            return Result.MISALIGNED_ADDRESS if misaligned else Result.ILLEGAL_ADDRESS
        case DeviceAssert():
            return Result.ASSERT
        case DeadlockError() | InstructionLimit():
            return Result.LAUNCH_TIMEOUT
        case KernelFault():
            return Result.LAUNCH_FAILED
        case LaunchError(resource="device memory"):
            return Result.OUT_OF_MEMORY
        case LaunchError(resource="registers"):
            return Result.LAUNCH_OUT_OF_RESOURCES
        case LaunchError(resource="resident blocks"):
            return Result.COOPERATIVE_LAUNCH_TOO_LARGE
        case LaunchError():
            return Result.INVALID_VALUE
        case CompileError():
            return Result.NO_BINARY_FOR_GPU
        case PtxError():
            return Result.INVALID_PTX
        case _:
            return Result.UNKNOWN
