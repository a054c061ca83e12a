"""Answers about kernels, their work-groups and their parameters."""

from __future__ import annotations

from warploom.clients.driver.attributes_of_functions import max_threads
from warploom.clients.driver.state import state
from warploom.clients.opencl.devices import ClDevice
from warploom.clients.opencl.errors import ClError, Status, demand
from warploom.clients.opencl.info import Answers, answer, text, uint, word, words
from warploom.clients.opencl.kernels import ClKernel, parameter_of
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.table import entry
from warploom.frontends.opencl_metadata import DeclaredParameter

REQUIRED = "reqd_work_group_size"

ANSWERS: Answers[ClKernel] = {
    0x1190: lambda k: text(k.name),
    0x1191: lambda k: uint(len(k.parameters)),
    0x1192: lambda k: uint(k.references),
    0x1193: lambda k: word(k.program.context.handle),
    0x1194: lambda k: word(k.program.handle),
    0x1195: lambda k: text(k.declared.attributes),
}


@entry("clGetKernelInfo")
def kernel_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    answer(ANSWERS, get(handle, ClKernel), question, capacity, target, size)


def _no_global_size(kernel: ClKernel) -> bytes:
    raise ClError(
        Status.INVALID_VALUE, "CL_KERNEL_GLOBAL_WORK_SIZE is available only for built-in kernels"
    )


GROUP_ANSWERS: Answers[ClKernel] = {
    0x11B0: lambda k: word(max_threads(k.function)),
    0x11B1: lambda k: words(k.declared.sizes.get(REQUIRED, (0, 0, 0))),
    0x11B2: lambda k: word(k.local_bytes),
    0x11B3: lambda k: word(state.device.spec.warp_size),
    0x11B4: lambda k: word(k.function.kernel.program.local_bytes),
    0x11B5: _no_global_size,
}


@entry("clGetKernelWorkGroupInfo")
def group_info(handle: int, on: int, question: int, capacity: int, target: int, size: int) -> None:
    kernel = get(handle, ClKernel)
    if on:
        get(on, ClDevice)
    answer(GROUP_ANSWERS, kernel, question, capacity, target, size)


SPACES = {0: 0x119E, 1: 0x119B, 2: 0x119D, 3: 0x119C}
ACCESSES = {"read_only": 0x11A0, "write_only": 0x11A1, "read_write": 0x11A2}
QUALIFIERS = {"const": 1, "restrict": 2, "volatile": 4, "pipe": 8}


def _qualifiers(parameter: DeclaredParameter) -> bytes:
    given = parameter.qualifiers.split()
    return word(sum(bit for name, bit in QUALIFIERS.items() if name in given))


PARAMETER_ANSWERS: Answers[DeclaredParameter] = {
    0x1196: lambda p: uint(SPACES[0 if p.type == "sampler_t" else p.space]),
    0x1197: lambda p: uint(ACCESSES.get(p.access, 0x11A3)),
    0x1198: lambda p: text(p.type),
    0x1199: _qualifiers,
    0x119A: lambda p: text(p.name),
}


@entry("clGetKernelArgInfo")
def parameter_info(
    handle: int, number: int, question: int, capacity: int, target: int, size: int
) -> None:
    kernel = get(handle, ClKernel)
    parameter_of(kernel, number)
    declared = kernel.declared.parameters
    known = number < len(declared) and declared[number].name and kernel.declared.shows_names
    why = "argument information is available only for programs built with -cl-kernel-arg-info"
    demand(known, Status.KERNEL_ARG_INFO_NOT_AVAILABLE, why)
    answer(PARAMETER_ANSWERS, declared[number], question, capacity, target, size)


@entry("clGetKernelSubGroupInfo", "clGetKernelSubGroupInfoKHR")
def sub_group_info(handle: int, on: int) -> None:
    get(handle, ClKernel)
    if on:
        get(on, ClDevice)
    why = "the device does not support sub-groups (CL_DEVICE_MAX_NUM_SUB_GROUPS)"
    demand(False, Status.INVALID_OPERATION, why)
