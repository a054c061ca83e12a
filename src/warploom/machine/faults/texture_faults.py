"""Builds the messages of faults of texture and surface instructions."""

from __future__ import annotations

from warploom.isa.kinds import OpKind
from warploom.isa.spec import Operation
from warploom.texture.descriptors import BAD_HANDLE, GEOMETRIES, OTHER_GEOMETRY, OUTSIDE_SURFACE

NAMES = {
    BAD_HANDLE: "bad handle",
    OTHER_GEOMETRY: "wrong geometry",
    OUTSIDE_SURFACE: "outside surface",
}
"""The kinds of these faults, as in `MemoryFault.kind`."""


SURFACES = {
    *(OpKind.SURFACE_LOAD, OpKind.SURFACE_STORE, OpKind.SURFACE_REDUCTION),
    OpKind.SURFACE_QUERY,
}


def texel_fault(
    kind: int, operation: Operation, address: int, size: int, at: str
) -> tuple[str, str]:
    """Returns the kind's name and the message of a fault.

    `address` and `size` are the two words that `texture.requests` records, by kind: BAD_HANDLE: the
    handle, and 1 if it is a sampler's; OTHER_GEOMETRY: 0, and the geometry that the handle has (16
    * is_surface + geometry); OUTSIDE_SURFACE: x and y; a misaligned access: x and its bytes. `at`
    states where the fault happened.
    """
    noun = "surface" if operation.kind in SURFACES else "texture"
    if kind == BAD_HANDLE:
        title = f"{address & (1 << 64) - 1:#x} is not a {'sampler' if size else noun}"
        advice = (
            f"Pass an object that `device.{noun}(...)` returned and that has not been freed, or "
            "bind it to the variable that the kernel uses (`module.bind`)."
        )
    elif kind == OTHER_GEOMETRY:
        is_surface, geometry = divmod(size, 16)
        actual = f"{GEOMETRIES[geometry]} {'surface' if is_surface else 'texture'}"
        title = f"`{operation.text}` cannot access a {actual}"
        advice = (
            "Use the function that matches the geometry of the texture or surface (layers, cube, "
            "dimensions)."
        )
    elif kind == OUTSIDE_SURFACE:
        unit = "bytes" if "b" in operation.modifiers else "texels"
        title = f"Invalid __surface__ access: x = {address} {unit}, y = {size} is outside"
        advice = (
            "Guard the access, or let the boundary mode clamp it or return zeros. In CUDA, x is "
            "in bytes: multiply it by the element size."
            if unit == "bytes"
            else "Guard the access: x must be less than the width, and y less than the height."
        )
    else:
        title = f"Misaligned __surface__ access: x = {address} bytes"
        advice = f"For an access of {size} bytes, x must be a multiple of {size}."
    return NAMES.get(kind, "misaligned"), f"{title}\n    {at}\n    {advice}"
