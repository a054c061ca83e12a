"""Answers about programs and their builds."""

from __future__ import annotations

import ctypes

from warploom.clients.opencl.binaries import BinaryType
from warploom.clients.opencl.devices import ClDevice, device
from warploom.clients.opencl.errors import Status, demand
from warploom.clients.opencl.info import Answers, answer, text, uint, word
from warploom.clients.opencl.objects import get
from warploom.clients.opencl.programs import NONE, SUCCESS, Program
from warploom.clients.opencl.table import entry

BINARIES = 0x1166


def _data(program: Program) -> bytes:
    return program.binary.data if program.binary and program.status in (SUCCESS, NONE) else b""


ANSWERS: Answers[Program] = {
    0x1160: lambda p: uint(p.references),
    0x1161: lambda p: word(p.context.handle),
    0x1162: lambda p: uint(1),
    0x1163: lambda p: word(device().handle),
    0x1164: lambda p: text(p.source),
    0x1165: lambda p: word(len(_data(p))),
    BINARIES: lambda p: word(0),
    0x1167: lambda p: word(len(p.executable.module.kernels)),
    0x1168: lambda p: text(";".join(p.executable.module.kernels)),
    0x1169: lambda p: b"",
    0x116A: lambda p: uint(0),
    0x116B: lambda p: uint(0),
}


@entry("clGetProgramInfo")
def program_info(handle: int, question: int, capacity: int, target: int, size: int) -> None:
    program = get(handle, Program)
    if question == BINARIES and target:
        demand(
            capacity >= 8,
            Status.INVALID_VALUE,
            "the size must be at least 8, the size of a pointer",
        )
        data, pointer = _data(program), ctypes.c_uint64.from_address(target).value
        if pointer:
            ctypes.memmove(pointer, data, len(data))
        target = 0
    answer(ANSWERS, program, question, capacity, target, size)


def _type(program: Program) -> int:
    failed = program.status not in (SUCCESS, NONE)
    return BinaryType.NONE if program.binary is None or failed else program.binary.type


BUILD_ANSWERS: Answers[Program] = {
    0x1181: lambda p: uint(p.status),
    0x1182: lambda p: text(p.options),
    0x1183: lambda p: text(p.log),
    0x1184: lambda p: uint(_type(p)),
    0x1185: lambda p: word(0),
}


@entry("clGetProgramBuildInfo")
def build_info(handle: int, on: int, question: int, capacity: int, target: int, size: int) -> None:
    program = get(handle, Program)
    get(on, ClDevice)
    answer(BUILD_ANSWERS, program, question, capacity, target, size)
