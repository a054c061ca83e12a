"""Messages for faults of texture and surface instructions."""

from __future__ import annotations

from warploom.isa.spec import Operation
from warploom.texture.descriptors import BAD_HANDLE, GEOMETRIES, OTHER_GEOMETRY, OUTSIDE_SURFACE

NAMES = {
    BAD_HANDLE: "bad handle",
    OTHER_GEOMETRY: "wrong geometry",
    OUTSIDE_SURFACE: "outside surface",
}


def texel_fault(
    kind: int, operation: Operation, first: int, second: int, at: str
) -> tuple[str, str]:
    """Return the kind and the message; `first` and `second` are what `texture.requests`
    recorded, `at` says where it happened."""
    surface = operation.name.startswith("su")
    what = "surface" if surface else "texture"
    if kind == BAD_HANDLE:
        title = f"{first & (1 << 64) - 1:#x} is no {'sampler' if second else what}"
        advice = (
            f"Pass what `device.{what}(...)` made and has not freed, or bind it to the variable"
            f" that the kernel names (`module.bind`)."
        )
    elif kind == OTHER_GEOMETRY:
        is_surface, geometry = divmod(second, 16)
        found = f"{GEOMETRIES[geometry]} {'surface' if is_surface else 'texture'}"
        title = f"`{operation.text}` cannot reach a {found}"
        advice = "Use the function that fits how it was made (layers, cube, dimensions)."
    elif kind == OUTSIDE_SURFACE:
        unit = "bytes" if "b" in operation.modifiers else "texels"
        title = f"Invalid __surface__ access: x = {first} {unit}, y = {second} is outside"
        advice = (
            "Guard the access, or let the boundary mode clamp it or read zeros. In CUDA, x counts"
            " bytes: multiply it by the size of an element."
        )
    else:
        title = f"Misaligned __surface__ access: x = {first} bytes"
        advice = f"An access of {second} bytes needs an x that {second} divides."
    return NAMES.get(kind, "misaligned"), f"{title}\n    {at}\n    {advice}"
