"""Draws the modelled timeline of a device's work as an HTML page: a row of bars for each stream,
below them the kernels that are resident, by the share of block slots that each has, and the SMs at
a moment that the reader chooses (`report.timeline_map`)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from warploom.report.timeline import microseconds, stream_names
from warploom.report.timeline_fills import Fill, fills_of
from warploom.report.timeline_map import MAP_STYLE, multiprocessors
from warploom.timing.timeline.residents import change_moments, share_at
from warploom.timing.timeline.work import ScheduledWork

WIDTH, LEFT, ROW, BAR, SLOTS, AXIS = 960, 96, 34, 22, 160, 26
"""Sizes in pixels: the time axis, the names before it, a row and a bar in it, the drawing of block
slots, and the labels of times."""

LETTER = 7, 14
"""The width and the height of a letter, about."""

STYLE = """
:root { color-scheme: light dark; font: 14px system-ui, sans-serif; }
body { margin: 24px auto; max-width: 1080px; padding: 0 12px; }
svg { width: 100%; height: auto; overflow: visible; }
svg text { fill: currentColor; font-size: 12px; }
svg .in-bar { fill: white; pointer-events: none; paint-order: stroke; stroke: rgb(0 0 0 / 0.55);
  stroke-width: 3px; }
svg .line { stroke: currentColor; opacity: 0.2; }
svg g:focus rect, svg g:hover rect { stroke: currentColor; stroke-width: 2; }
table { border-collapse: collapse; margin-top: 16px; }
td, th { padding: 2px 12px 2px 0; text-align: right; }
td:last-child, th:last-child, td:first-child, th:first-child { text-align: left; }
"""


@dataclass(frozen=True)
class _Drawing:
    """Holds what all parts of a page share: the works, how each is filled, and the scale of
    time."""

    works: Sequence[ScheduledWork]
    end: float
    streams: Mapping[Hashable, str]
    fills: Mapping[ScheduledWork, Fill]
    sms: int

    @classmethod
    def of(cls, works: Sequence[ScheduledWork], sms: int) -> _Drawing:
        """Returns the drawing of some works on a device of so many SMs."""
        fills = dict(zip(works, fills_of(works), strict=True))
        return cls(works, max(work.end for work in works), stream_names(works), fills, sms)

    def x(self, seconds: float) -> float:
        """Returns where a moment is drawn."""
        return LEFT + (WIDTH * seconds / self.end if self.end else 0.0)

    def stream(self, work: ScheduledWork) -> str:
        """Returns the name of a work's stream."""
        return self.streams[work.work.issued.stream]


def timeline_page(device: str, works: Sequence[ScheduledWork], sms: int) -> str:
    """Returns the page of a timeline on a device of so many SMs, which needs no other file."""
    title = f"Timeline on {device} (modelled)"
    if not works:
        return _page(title, f"<h1>{escape(title)}</h1><p>There were no launches and no copies.</p>")
    drawing = _Drawing.of(works, sms)
    alone = sum(work.work.demand.seconds for work in works)
    return _page(
        title,
        f"<h1>{escape(title)}</h1><p>{microseconds(drawing.end)} us; without overlap "
        f"{microseconds(alone)} us. All times are modelled; host time between calls is not "
        "counted. Each color marks a kernel, and each hatch pattern marks a "
        f"stream.</p>{_svg(drawing)}{_map(drawing)}{_table(drawing)}",
    )


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{MAP_STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _svg(drawing: _Drawing) -> str:
    """Returns the picture: streams, axis of time, block slots."""
    names = list(dict.fromkeys(drawing.streams.values()))
    definitions = "".join(fill.definition for fill in dict.fromkeys(drawing.fills.values()))
    top = len(names) * ROW + AXIS
    parts = [
        f'<svg viewBox="0 0 {LEFT + WIDTH + 8} {top + SLOTS + 16}" role="img" aria-label="Work in '
        'each stream over time, and the share of block slots per kernel">',
        f"<defs>{definitions}</defs>",
    ]
    for row, name in enumerate(names):
        parts.append(f'<text x="0" y="{row * ROW + 16}">stream {escape(name)}</text>')
    for tick in range(5):
        x = LEFT + WIDTH * tick / 4
        parts.append(f'<line class="line" x1="{x}" x2="{x}" y1="0" y2="{top + SLOTS}"/>')
        anchor = ("start", "middle", "middle", "middle", "end")[tick]
        parts.append(
            f'<text x="{x}" y="{top - 8}" text-anchor="{anchor}">'
            f"{microseconds(drawing.end * tick / 4)} us</text>"
        )
    for work in drawing.works:
        row = names.index(drawing.streams[work.work.issued.stream])
        parts.append(_bar(drawing, work, row * ROW))
    parts.append(f'<text x="0" y="{top + 12}">block slots</text>')
    parts.append(f'<text x="0" y="{top + 30}">of all SMs</text>')
    return "".join([*parts, *_slots(drawing, top), "</svg>"])


def _described(work: ScheduledWork) -> str:
    return (
        f"{work.work.title}: {microseconds(work.begin)} to {microseconds(work.end)} us; if run"
        f" alone, {microseconds(work.work.demand.seconds)} us"
    )


def _bar(drawing: _Drawing, work: ScheduledWork, y: float) -> str:
    """Returns the bar of a work, with its name where that fits."""
    x, width = drawing.x(work.begin), max(2.0, drawing.x(work.end) - drawing.x(work.begin))
    shown = work.work.title[: int(width / LETTER[0])]
    label = f'<text class="in-bar" x="{x + 4:.1f}" y="{y + 15}">{escape(shown)}</text>'
    return (
        f'<g tabindex="0"><title>{escape(_described(work))}</title>'
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="3"'
        f' fill="{drawing.fills[work].svg}"/>{label if len(shown) > 2 else ""}</g>'
    )


def _slots(drawing: _Drawing, top: float) -> list[str]:
    """Returns the resident kernels: from one change of slots to the next a column, with a part of
    its height for each."""
    kernels = [work for work in drawing.works if work.slots]
    moments = change_moments(drawing.works)
    parts = [
        f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{SLOTS}" fill="none"'
        ' stroke="currentColor" stroke-opacity="0.3"/>'
    ]
    for begin, end in pairwise(moments):
        y = top + SLOTS
        for work in kernels:
            share = share_at(work, begin)
            if not share:
                continue
            y -= SLOTS * share
            parts.append(
                f"<g><title>{escape(work.work.title)}, stream {escape(drawing.stream(work))}: "
                f"{share:.0%} of the block slots</title>"
                f'<rect x="{drawing.x(begin):.1f}" y="{y:.1f}" height="{SLOTS * share:.1f}"'
                f' width="{max(1.0, drawing.x(end) - drawing.x(begin)):.1f}"'
                f' fill="{drawing.fills[work].svg}"/>'
                f"{_label(drawing, work, begin, end, y, SLOTS * share)}</g>"
            )
    return parts


def _label(
    drawing: _Drawing, work: ScheduledWork, begin: float, end: float, y: float, height: float
) -> str:
    """Returns the stream of a resident kernel as text, where its column is wide enough."""
    x, text = drawing.x(begin), f"stream {drawing.stream(work)}"
    if height < LETTER[1] or drawing.x(end) - x < LETTER[0] * len(text) + 8:
        return ""
    at = y + height / 2 + 4
    return f'<text class="in-bar" x="{x + 4:.1f}" y="{at:.1f}">{escape(text)}</text>'


def _map(drawing: _Drawing) -> str:
    """Returns the SMs at a chosen moment."""
    colours = {index: drawing.fills[work].css for index, work in enumerate(drawing.works)}
    scale = LEFT, WIDTH / drawing.end if drawing.end else 0.0
    return multiprocessors(drawing.works, drawing.sms, drawing.streams, colours, scale)


def _table(drawing: _Drawing) -> str:
    """Returns the works as a table, which says in words what the picture shows."""
    rows = "".join(
        f"<tr><td>{escape(drawing.stream(work))}</td>"
        f"<td>{microseconds(work.begin)}</td><td>{microseconds(work.end)}</td>"
        f"<td>{escape(work.work.title)}</td></tr>"
        for work in sorted(drawing.works, key=lambda work: work.begin)
    )
    head = "<tr><th>stream</th><th>begin (us)</th><th>end (us)</th><th>work</th></tr>"
    return f'<div class="table" tabindex="0"><table>{head}{rows}</table></div>'
