"""Checks every form of texture and surface instructions with every choice of every modifier, on
both machines: results are equal bit by bit. Filtering is left to test_texels_agree.py."""

from __future__ import annotations

import random

import numpy as np
import pytest
from form_kernels import Kernel, assert_agreement, covering, elements

import warploom.isa.ops  # noqa: F401  (fills FORMS)
from warploom.isa.spec import FORMS, Operation, Unit
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.textures import TextureDescription
from warploom.ptx.rules.textures import COORDINATES, LAYERED
from warploom.texture import descriptors as d

SPECS = [spec for forms in FORMS.values() for spec in forms if spec.unit is Unit.TEXTURE]
KERNELS = 6
WIDTH = 64
TEXELS = WIDTH * 4 * 4 * 12
"""Of one texture at most: its width, height, depth and layers."""

FORMATTED = {"b32": "u32", "b64": "u32"}


def objects(memory: DeviceMemory) -> None:
    """Creates a texture of each geometry, then a surface of each, with random words."""
    rng = np.random.default_rng(3)
    sampler = d.sampler_word((d.CLAMP, d.CLAMP, d.CLAMP), flags=0)
    for kind in (d.TEXTURE, d.SURFACE):
        for geometry in d.GEOMETRIES:
            buffer = memory.allocate(4 * TEXELS, geometry)
            memory.write(buffer.address, rng.integers(0, 1 << 32, TEXELS, np.uint32).tobytes())
            axes = COORDINATES[geometry] - (geometry in LAYERED)
            square = "cube" in geometry
            extents = (4, 4, 1) if square else (WIDTH, 4 if axes > 1 else 1, 4 if axes > 2 else 1)
            layers = {"cube": 6, "acube": 12}.get(geometry, 3 if geometry in LAYERED else 1)
            memory.textures.add(
                TextureDescription(
                    kind, geometry, "u32", 1, extents, (buffer.address,), layers, sampler=sampler
                )
            )


def add(kernel: Kernel, operation: Operation) -> None:
    """Adds one instruction, with a texture or surface of its geometry."""
    m, spec = operation.modifiers, operation.spec
    geometry = m.text("geom", "2d")
    surface = operation.name.startswith("su")
    handle = d.HANDLE_TAG + len(d.GEOMETRIES) * surface + d.GEOMETRIES.index(geometry)
    kernel.lines.append(f"mov.u64 %at, {handle}")
    shown: list[str] = []
    for form in spec.shown:
        if form.type == "texels":
            shown.append(f"[%at, {_coordinates(kernel, operation, geometry)}]")
        elif form.type == "handle":
            shown.append("[%at]")
        elif form.type == "axes":
            if form.optional:
                continue
            count = COORDINATES[geometry] - (geometry in LAYERED)
            words = [kernel.register(32) for _ in range(4 if count == 3 else count)]
            shown.append("{" + ", ".join(words) + "}")
        elif form.name == "lod":
            shown.append("0" if form.type == "s32" else kernel.register(32))
        elif operation.name == "istypep" and form.name == "a":
            shown.append("%at")
        else:
            shown.append(kernel.operand(operation, form))
    kernel.add(operation, shown)


def _coordinates(kernel: Kernel, operation: Operation, geometry: str) -> str:
    """Returns coordinates inside the surface if the instruction could trap, aligned to its access;
    else random ones."""
    count = COORDINATES[geometry]
    words = [kernel.register(32) for _ in range(count)]
    if operation.name.startswith("su"):
        type = operation.modifiers.scalar()
        value = next(form for form in operation.spec.operands if form.name in ("d", "v"))
        size = elements(operation, value) * type.bytes
        formatted = ".p." in operation.text
        x = 1 if geometry in LAYERED else 0
        bound = WIDTH - 1 if formatted else 4 * WIDTH - size
        kernel.lines.append(f"and.b32 %i, {words[x]}, {bound & -size}")
        words = ["0"] * count
        words[x] = "%i"
    whole = 4 if count == 3 else count
    return "{" + ", ".join((words + words)[:whole]) + "}"


@pytest.mark.parametrize("part", range(KERNELS))
def test_both_machines_give_the_same(part: int) -> None:
    rng = random.Random(part)
    kernel = Kernel(rng)
    for spec in SPECS[part::KERNELS]:
        for operation in covering(spec, rng):
            add(kernel, operation)
    assert_agreement(kernel, SPECS[part::KERNELS], part, objects)
