"""The buffers that the parameters of a launch point to, with the names that the source gives
them."""

from __future__ import annotations

from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.report.advice.case import PointerParameter

POINTER_BYTES = 8


def pointer_parameters(kernel: LoadedKernel, launch: Launch) -> tuple[PointerParameter, ...]:
    """Returns the parameters that point into allocations which are still live."""
    found: list[PointerParameter] = []
    for declared, parameter in zip(kernel.signature, kernel.function.parameters, strict=True):
        slot = kernel.program.slots.get(parameter.name)
        if slot is None or slot.size != POINTER_BYTES:
            continue
        value = int.from_bytes(launch.parameters[slot.offset : slot.offset + slot.size], "little")
        buffer = kernel.context.memory.find(value)
        if buffer is not None:
            found.append(
                PointerParameter(
                    parameter.name, declared.name, declared.text, buffer.address, buffer.size
                )
            )
    return tuple(found)
