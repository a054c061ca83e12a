"""A line through measured points as SVG, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BELOW = 480, 200, 64, 36, 44


@dataclass(frozen=True)
class Line:
    """What is drawn: `across` in `unit` and `up` in `measure`, both above 0."""

    title: str
    unit: str
    measure: str
    across: Sequence[float]
    up: Sequence[float]


def as_svg(line: Line) -> str:
    """The line with a mark at every point, and powers of ten beside it."""
    low, high = min(line.up), max(line.up)
    bottom, top = math.floor(math.log10(low)), math.ceil(math.log10(high))
    top = max(top, bottom + 1)
    first, last = math.log(line.across[0]), math.log(line.across[-1])

    def x(value: float) -> float:
        return round(LEFT + WIDTH * (math.log(value) - first) / (last - first), 1)

    def y(value: float) -> float:
        return round(TOP + HEIGHT * (top - math.log10(value)) / (top - bottom), 1)

    points = [(x(a), y(b)) for a, b in zip(line.across, line.up, strict=True)]
    path = " ".join(f"{a},{b}" for a, b in points)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 32}"'
        f' height="{TOP + HEIGHT + BELOW}" font-family="sans-serif" font-size="12">',
        f"<title>{escape(line.title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(line.title)}, {line.measure}</text>',
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        *_marks([10.0**power for power in range(bottom, top + 1)], y),
        f'<polyline points="{path}" fill="none" stroke="#1a6fb0" stroke-width="2"/>',
        *(f'<circle cx="{a}" cy="{b}" r="3" fill="#1a6fb0"/>' for a, b in points),
        *(f'<text x="{x(value)}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{value:,}</text>'
          for value in line.across),
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 34}" text-anchor="end">{line.unit}</text>',
        "</svg>",
        "",
    ])  # fmt: skip


def _marks(values: Sequence[float], y: Callable[[float], float]) -> Iterator[str]:
    """The measure's powers of ten, with lines across."""
    for value in values:
        at = y(value)
        yield f'<text x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{value:g}</text>'
        yield f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{at}" y2="{at}" stroke="#ddd"/>'
