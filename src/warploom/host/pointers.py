"""The buffers that the parameters of a launch point to, with the names that the source gives
them."""

from __future__ import annotations

from warploom.host.loaded import LoadedKernel
from warploom.machine.launch import Launch
from warploom.report.advice.case import PointerParameter

POINTER_BYTES = 8


def pointer_parameters(kernel: LoadedKernel, launch: Launch) -> tuple[PointerParameter, ...]:
    """Returns the parameters that are pointers, by their declarations or by the buffers that are
    still live at their values."""
    found: list[PointerParameter] = []
    for declared, parameter in zip(kernel.signature, kernel.function.parameters, strict=True):
        slot = kernel.program.slots.get(parameter.name)
        if slot is None or slot.size != POINTER_BYTES:
            continue
        value = int.from_bytes(launch.parameters[slot.offset : slot.offset + slot.size], "little")
        buffer = kernel.context.memory.find(value)
        if buffer is not None or "*" in declared.text:
            start, size = (value, None) if buffer is None else (buffer.address, buffer.size)
            found.append(
                PointerParameter(parameter.name, declared.name, declared.text, start, size)
            )
    return tuple(found)
