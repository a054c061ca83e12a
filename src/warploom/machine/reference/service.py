"""Executes calls of printf, assert, malloc and free (`machine.services`) on the reference
machine."""

from __future__ import annotations

from warploom.core.types import U64
from warploom.isa.instruction import Instruction, Space, Vector
from warploom.machine.reference.lane_access import AccessRequest
from warploom.machine.reference.lane_checks import peek
from warploom.machine.reference.lanes import Values, collect, lanes_of
from warploom.machine.reference.operands import read, write
from warploom.machine.reference.state import Warp
from warploom.machine.services import ServiceCall
from warploom.program.services import service_of


def serve(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes a `call` of a device function that the host provides, as one ServiceCall for all
    lanes of `mask` (`on`: the same set as a predicate), and writes its result, if any, there; any
    other `call` has been lowered to other instructions and does nothing. Raises KernelFault,
    DeviceAssert, LaunchError or what the launch's output raises."""
    name = service_of(instruction)
    if name is None:
        return
    returns, arguments = instruction.operands[0], instruction.operands[2]
    assert isinstance(returns, Vector)
    assert isinstance(arguments, Vector)

    def read_memory(lane: int, address: int, size: int) -> bytes:
        """Returns the `size` bytes that a lane sees at a generic address, not counted as an access;
        raises KernelFault if they are not accessible."""
        return peek(warp, AccessRequest(index, Space.GENERIC, "load", size), lane, address)

    call = ServiceCall(
        name,
        index,
        warp.block.number,
        warp.number,
        tuple(lanes_of(mask)),
        tuple(read(warp, argument, U64).tolist() for argument in arguments.elements),
        read_memory,
    )
    results = collect(warp.run.services.serve(call), U64)
    for register in returns.elements:
        write(warp, register, results, U64, on)
