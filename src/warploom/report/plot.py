"""Curves of occupancy as text for a terminal, and as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from warploom.report.occupancy_curve import Curve

ROWS = 8
COLUMNS = 64
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def as_text(curve: Curve) -> str:
    """Returns a bar chart, 8 lines high; the mark under it is where the kernel stands."""
    heights = _resampled(curve)
    lines = [f"{curve.title} -> active warps per SM (of {curve.most})"]
    for row in range(ROWS - 1, -1, -1):
        label = f"{curve.most * (row + 1) // ROWS:>4}"
        bars = "".join(_bar(height * ROWS * 8 // curve.most - row * 8) for height in heights)
        lines.append(f"{label} |{bars}")
    mark = _column(curve, len(heights))
    lines.append(f"     +{'-' * mark}^{'-' * (len(heights) - mark - 1)}")
    ends = f"{curve.values[0]:,}", f"{curve.values[-1]:,} {curve.unit}"
    lines.append(f"      {ends[0]}{ends[1]:>{max(1, len(heights) - len(ends[0]))}}")
    lines.append(f"      ^ now: {curve.now:,}")
    return "\n".join(lines)


def _bar(eighths: int) -> str:
    return _EIGHTHS[max(0, min(8, eighths))]


def _resampled(curve: Curve) -> list[int]:
    """Returns the warps at no more than COLUMNS values, evenly spread."""
    count = min(COLUMNS, len(curve.values))
    return [curve.warps[i * (len(curve.values) - 1) // max(1, count - 1)] for i in range(count)]


def _column(curve: Curve, count: int) -> int:
    span = max(1, curve.values[-1] - curve.values[0])
    at = round((curve.now - curve.values[0]) * (count - 1) / span)
    return max(0, min(count - 1, at))


WIDTH, HEIGHT, LEFT, TOP, GAP = 640, 160, 56, 40, 72


def as_svg(curves: Sequence[Curve], title: str) -> str:
    """Returns all curves one below the other, each with its kernel's value marked."""
    height = TOP + len(curves) * (HEIGHT + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 24}" height="{height}"'
        f' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, curve in enumerate(curves):
        parts += _svg_curve(curve, TOP + number * (HEIGHT + GAP))
    return "\n".join([*parts, "</svg>", ""])


def _svg_curve(curve: Curve, top: int) -> list[str]:
    first, last = curve.values[0], curve.values[-1]
    span, bottom = max(1, last - first), top + HEIGHT

    def x(value: int) -> float:
        return round(LEFT + WIDTH * (min(max(value, first), last) - first) / span, 1)

    def y(warps: int) -> float:
        return round(bottom - HEIGHT * warps / curve.most, 1)

    steps = [f"M{x(first)} {y(curve.warps[0])}"]
    steps += [
        f"H{x(value)}V{y(warps)}"
        for value, warps in zip(curve.values[1:], curve.warps[1:], strict=True)
    ]
    marks = [(0, curve.most), (1, curve.most // 2), (2, 0)]
    return [
        f'<text x="{LEFT}" y="{top - 6}">{escape(curve.title)}: active warps per SM</text>',
        *(f'<text x="{LEFT - 8}" y="{y(w) + 4}" text-anchor="end">{w}</text>' for _, w in marks),
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        f'<path d="{"".join(steps)}" fill="none" stroke="#1a6fb0" stroke-width="2"/>',
        f'<line x1="{x(curve.now)}" x2="{x(curve.now)}" y1="{top}" y2="{bottom}"'
        f' stroke="#c0392b" stroke-dasharray="4 3"/>',
        f'<text x="{LEFT}" y="{bottom + 16}">{first:,}</text>',
        f'<text x="{LEFT + WIDTH}" y="{bottom + 16}" text-anchor="end">{last:,}'
        f" {escape(curve.unit)}</text>",
        f'<text x="{x(curve.now)}" y="{bottom + 30}" text-anchor="middle" fill="#c0392b">now:'
        f" {curve.now:,}</text>",
    ]
