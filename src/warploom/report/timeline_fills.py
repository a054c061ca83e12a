"""Chooses how the work of a timeline is filled in drawings: a color for each kernel, and a hatch
for each stream that launches it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from warploom.timing.timeline.work import Engine, ScheduledWork

COLOURS = ("#3b6fb6", "#b65f3b", "#3b8f6a", "#8a5bb0", "#a3812a", "#4d8fa3", "#b0487a", "#667080")
"""The colors of kernels, in the order of their first launch; then they repeat."""

COPY = "#8c8c8c"

ANGLES = (None, 45, 135, 90)
"""The hatches of streams: none, then lines at an angle in degrees; then they repeat."""

GAP = 8
"""Pixels from one line of a hatch to the next."""

LINE = "rgb(255 255 255 / 0.55)"


@dataclass(frozen=True)
class Fill:
    """A color with the lines of a hatch, at an angle in degrees; None for no lines."""

    colour: str
    angle: int | None = None

    @property
    def svg(self) -> str:
        """Returns the value of an SVG fill; `definition` must be in the same document."""
        return self.colour if self.angle is None else f"url(#{self._name})"

    @property
    def css(self) -> str:
        """Returns the value of a CSS background."""
        if self.angle is None:
            return self.colour
        # The angle of a gradient is across its lines, from the upper edge.
        across = self.angle + 90
        lines = f"repeating-linear-gradient({across}deg, {LINE} 0 2px, transparent 2px 5px)"
        return f"{lines}, {self.colour}"

    @property
    def definition(self) -> str:
        """Returns the SVG pattern; nothing without lines."""
        if self.angle is None:
            return ""
        return (
            f'<pattern id="{self._name}" width="{GAP}" height="{GAP}"'
            f' patternUnits="userSpaceOnUse" patternTransform="rotate({self.angle})">'
            f'<rect width="{GAP}" height="{GAP}" fill="{self.colour}"/>'
            f'<rect width="2" height="{GAP}" fill="{LINE}"/></pattern>'
        )

    @property
    def _name(self) -> str:
        return f"fill-{self.colour[1:]}-{self.angle}"


def fills_of(works: Sequence[ScheduledWork]) -> list[Fill]:
    """Returns the fill of each work: launches of a kernel have one color, and a hatch by their
    stream, in the order of the streams' first launches of that kernel."""
    streams: dict[str, dict[Hashable, None]] = {}
    for work in works:
        if work.work.engine is Engine.SMS:
            streams.setdefault(work.work.name, {}).setdefault(work.work.issued.stream)
    kernels = {name: (number, list(names)) for number, (name, names) in enumerate(streams.items())}

    def fill(work: ScheduledWork) -> Fill:
        if work.work.engine is not Engine.SMS:
            return Fill(COPY)
        number, names = kernels[work.work.name]
        hatch = names.index(work.work.issued.stream) % len(ANGLES)
        return Fill(COLOURS[number % len(COLOURS)], ANGLES[hatch])

    return [fill(work) for work in works]
