"""Draws the SMs of a device at a moment of its timeline: which kernels have blocks on each, and how
many. The moment is chosen by a slider, or by pointing at the drawing above it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from itertools import groupby

from warploom.report.timeline import microseconds
from warploom.timing.timeline.residents import ResidentBlocksOfSms, residents
from warploom.timing.timeline.work import ScheduledWork

MAP_STYLE = """
.sms { display: grid; gap: 4px; padding: 0; list-style: none;
  grid-template-columns: repeat(auto-fill, minmax(120px, 1fr)); }
.sms li { border: 1px solid color-mix(in srgb, currentColor 30%, transparent); padding: 2px 4px;
  border-radius: 3px; font-size: 12px; overflow-wrap: anywhere; }
.sms div { display: flex; gap: 4px; align-items: center; }
.moment { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; }
.moment input { flex: 1 1 240px; min-width: 0; }
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 2px; flex: none; }
.kernels { padding: 0; list-style: none; }
.table { overflow-x: auto; }
"""

SCRIPT = """
const data = JSON.parse(document.getElementById("map").text);
const { moments, names, streams, colours, left, scale } = data;
const slider = document.getElementById("moment"), said = document.getElementById("said");
const cells = document.getElementById("sms"), kernels = document.getElementById("kernels");
const swatch = (number) => {
  const found = document.createElement("i");
  found.className = "swatch"; found.style.background = colours[number];
  return found;
};
const counted = (blocks) => blocks + (blocks === 1 ? " block" : " blocks");
function show(number) {
  const { text, runs, left_out } = moments[number];
  slider.value = number;
  slider.setAttribute("aria-valuetext", text);
  said.textContent = text;
  const drawn = [];
  for (const [first, last, inside] of runs) for (let sm = first; sm <= last; sm++) {
    const cell = document.createElement("li"), title = document.createElement("b");
    title.textContent = "SM " + sm;
    cell.append(title);
    for (const [kernel, blocks] of inside) {
      const row = document.createElement("div");
      row.append(swatch(kernel), counted(blocks) + ", stream " + streams[kernel]);
      row.title = names[kernel];
      cell.append(row);
    }
    if (!inside.length) cell.append(" no block");
    drawn.push(cell);
  }
  cells.replaceChildren(...drawn);
  const totals = new Map();
  for (const [first, last, inside] of runs) for (const [kernel, blocks] of inside)
    totals.set(kernel, (totals.get(kernel) ?? 0) + blocks * (last - first + 1));
  for (const kernel of Object.keys(left_out)) if (!totals.has(+kernel)) totals.set(+kernel, 0);
  kernels.replaceChildren(...[...totals].map(([kernel, blocks]) => {
    const line = document.createElement("li"), without = left_out[kernel];
    const reason = "their slots are spread over several SMs";
    const more = without ? `; ${without} more are not shown, because ${reason}` : "";
    const name = ` ${names[kernel]}, stream ${streams[kernel]}`;
    line.append(swatch(kernel), `${name}: ${counted(blocks)} resident${more}`);
    return line;
  }));
}
slider.addEventListener("input", () => show(+slider.value));
const drawing = document.querySelector("svg");
drawing.addEventListener("pointermove", (event) => {
  const point = new DOMPoint(event.clientX, event.clientY);
  const seconds = (point.matrixTransform(drawing.getScreenCTM().inverse()).x - left) / scale;
  const number = moments.findIndex((one) => one.begin <= seconds && seconds < one.end);
  if (number >= 0) show(number);
});
show(0);
"""


def multiprocessors(
    works: Sequence[ScheduledWork],
    sms: int,
    streams: Mapping[Hashable, str],
    colours: Mapping[int, str],
    scale: tuple[float, float],
) -> str:
    """Returns the part of the page: a slider over the moments at which slots change, and the SMs of
    the device. `streams` are the names of streams, `colours` those of works by index; `scale` says
    where a time is drawn: at 0, and units for a second. Empty if no kernel has blocks."""
    found = residents(works, sms)
    if not found:
        return ""
    data = {
        "moments": [_moment(one, sms) for one in found],
        "names": [work.work.title for work in works],
        "streams": [streams[work.work.issued.stream] for work in works],
        "colours": colours,
        "left": scale[0],
        "scale": scale[1],
    }
    # No "<" may end the script element.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"<h2>Multiprocessors</h2><p>Blocks of each kernel on each of the {sms} SMs at one moment. "
        "To select a moment, point to it on the timeline or move the slider. A block begins as "
        "soon as a slot is free, on the SM with the largest share of free block slots.</p>"
        '<p class="moment"><label for="moment">Moment</label>'
        f'<input id="moment" type="range" min="0" max="{len(found) - 1}" value="0">'
        '<output id="said" for="moment"></output></p><ul class="kernels" id="kernels"></ul>'
        '<ol class="sms" id="sms" aria-label="SMs at this moment"></ol>'
        f'<script type="application/json" id="map">{text}</script>'
        f'<script type="module">{SCRIPT}</script>'
    )


def _moment(one: ResidentBlocksOfSms, sms: int) -> dict[str, object]:
    """Returns a moment as data of the page; neighboring SMs with equal blocks are one entry."""

    def inside(sm: int) -> list[list[int]]:
        return [[index, int(on[sm])] for index, on in one.blocks.items() if on[sm]]

    runs: list[list[object]] = []
    for content, group in groupby(range(sms), key=inside):
        numbers = list(group)
        runs.append([numbers[0], numbers[-1], content])
    return {
        "begin": one.begin,
        "end": one.end,
        "text": escape(f"{microseconds(one.begin)} to {microseconds(one.end)} us"),
        "runs": runs,
        "left_out": {index: count for index, count in one.without_sm.items() if count},
    }
