"""The roofline of a launch's modelled time: operations a second against operations a byte.

Under a memory's roof, a kernel that does so many operations for each byte of it can do no more than
that many times its bandwidth; under that of arithmetic, no more than the units do. Source: S.
Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52 (4), 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from warploom.timing.readings import Roof
from warploom.timing.result import Timing

MEMORIES = ("L1", "Shared", "L2", "DRAM")
FLOATING = ("FP64", "FP32", "FP16", "TENSOR")
NOT_ARITHMETIC = (*MEMORIES, "Issue")


@dataclass(frozen=True)
class Point:
    """The place of a kernel under the roof of one memory: `intensity` in operations a byte, `rate`
    in operations a second."""

    memory: Roof
    intensity: float
    rate: float
    roof: float
    """The most that it could do there."""


@dataclass(frozen=True)
class Roofline:
    """The most used arithmetic unit, one of floating point if any was, and where the kernel stands
    with each memory that it used."""

    title: str
    arithmetic: Roof
    points: tuple[Point, ...]


def roofline_of(timing: Timing) -> Roofline | None:
    """Returns the roofline of a timing; None where the kernel computes nothing."""
    units = [roof for roof in timing.roofs if roof.name not in NOT_ARITHMETIC and roof.used > 0]
    if not units:
        return None
    unit = max(units, key=lambda roof: (roof.name in FLOATING, roof.used))
    rate = unit.used * unit.peak
    points = [
        Point(roof, intensity, rate, min(unit.peak, intensity * roof.peak))
        for roof in timing.roofs
        if roof.name in MEMORIES and roof.used > 0
        for intensity in [rate / (roof.used * roof.peak)]
    ]
    title = f"{timing.program.title} on {timing.device.title} (modelled)"
    return Roofline(title, unit, tuple(sorted(points, key=lambda point: point.intensity)))


def as_text(line: Roofline) -> str:
    """Returns a line for each memory: how near the kernel is to its roof."""
    unit = line.arithmetic
    lines = [
        f"Roofline of {line.title}",
        f"{unit.name}: {_si(unit.used * unit.peak)} {unit.unit}/s of {_si(unit.peak)}",
    ]
    for point in line.points:
        share = point.rate / point.roof
        bar = "█" * round(32 * min(1.0, share))
        name, bound = point.memory.name, "arithmetic" if point.roof == unit.peak else "memory"
        lines.append(
            f"{name:>7} {point.intensity:9.3g} {unit.unit}/byte  |{bar:<32}| {100 * share:5.1f} %"
            f" of {_si(point.roof)}/s, bound by {bound}"
        )
    return "\n".join(lines)


def _si(value: float) -> str:
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


WIDTH, HEIGHT, LEFT, TOP, BELOW = 640, 360, 72, 40, 64
DECADES = 4
COLOURS = ("#1a6fb0", "#2e8b57", "#b8860b", "#8e44ad")


def as_svg(line: Roofline) -> str:
    """Returns both axes logarithmic; a dashed line for each memory, a mark where the kernel
    stands."""
    unit = line.arithmetic
    ridges = [unit.peak / point.memory.peak for point in line.points]
    seen = [*ridges, *(point.intensity for point in line.points)]
    low, high = math.floor(math.log10(min(seen))) - 1, math.ceil(math.log10(max(seen))) + 1
    top = math.ceil(math.log10(unit.peak))
    bottom = min(top - DECADES, math.floor(math.log10(max(1.0, unit.used * unit.peak))) - 1)

    def x(intensity: float) -> float:
        return round(LEFT + WIDTH * (math.log10(intensity) - low) / (high - low), 1)

    def y(rate: float) -> float:
        place = max(bottom, math.log10(max(rate, 1e-9)))
        return round(TOP + HEIGHT * (top - place) / (top - bottom), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 24}"'
        f' height="{TOP + HEIGHT + BELOW}" font-family="sans-serif" font-size="12">',
        f"<title>Roofline of {escape(line.title)}</title>",
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(line.title)}</text>',
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
    ]
    for decade in range(bottom, top + 1):
        parts.append(
            f'<text x="{LEFT - 8}" y="{y(10.0**decade) + 4}" text-anchor="end">1e{decade}</text>'
        )
    for decade in range(low, high + 1):
        parts.append(
            f'<text x="{x(10.0**decade)}" y="{TOP + HEIGHT + 18}" text-anchor="middle">'
            f"{10.0**decade:g}</text>"
        )
    parts.append(
        f'<text x="{LEFT + WIDTH / 2}" y="{TOP + HEIGHT + 40}" '
        f'text-anchor="middle">{escape(unit.unit)} per byte; vertical axis: {escape(unit.name)} '
        f"{escape(unit.unit)} per second</text>"
    )
    first = min(ridges)
    parts.append(
        f'<line x1="{x(first)}" x2="{LEFT + WIDTH}" y1="{y(unit.peak)}" y2="{y(unit.peak)}"'
        f' stroke="#333" stroke-width="2"/>'
    )
    for point, ridge, colour in zip(line.points, ridges, COLOURS, strict=False):
        lowest = max(10.0**low, 10.0**bottom / point.memory.peak)
        parts += [
            f'<line x1="{x(lowest)}" y1="{y(lowest * point.memory.peak)}" x2="{x(ridge)}"'
            f' y2="{y(unit.peak)}" stroke="{colour}" stroke-dasharray="6 3"/>',
            f'<circle cx="{x(point.intensity)}" cy="{y(point.rate)}" r="5" fill="{colour}"/>',
            f'<text x="{x(point.intensity) + 8}" y="{y(point.rate) + 4}" fill="{colour}">'
            f"{escape(point.memory.name)}</text>",
        ]
    return "\n".join([*parts, "</svg>", ""])
