// Copies of the Tensor Memory Accelerator in modelled time: from their issue to their arrival, as
// many rows as were in flight together.

import { useRef } from "preact/hooks";
import { HELP } from "../help.ts";
import { copyRows, type CopySpan, type Modelled } from "../modelled.ts";
import type { Model } from "../model.ts";
import { cycles } from "../state.ts";
import { hideTip, tellAt } from "../tips.ts";
import { penOf, useDrawing } from "./drawing.ts";
import { LEFT, RIGHT, type Range } from "./tracks.ts";

const ROW = 12;
const MOST_ROWS = 24;

export function Copies({ model, made }: { model: Model; made: Modelled }) {
  const place = useRef<HTMLCanvasElement>(null);
  const rows = copyRows(made.copies).slice(0, MOST_ROWS);
  const inSight = (): Range => cycles.value ?? made.range;
  useDrawing(place, (canvas) => drawCopies(canvas, rows, inSight()), made);
  const longest = made.copies.reduce((most, one) => Math.max(most, one.until - one.since), 0);
  const summary = `${made.copies.length.toLocaleString()} copies were in flight, at most ${rows.length} at the same time, for up to ${longest.toLocaleString()} cycles each.`;
  return (
    <div class="copies">
      <h3>
        Copies in flight <em>modelled, from issue to arrival. {summary}</em>
      </h3>
      <canvas
        ref={place}
        style={{ height: `${rows.length * ROW + 2}px` }}
        role="img"
        aria-label={`Copies in flight over the cycles of the SM. ${summary}`}
        onPointerMove={(event) => {
          const found = copyAt(rows, event, inSight());
          if (!found) return hideTip();
          const text = `Modelled: copy in flight, cycles ${found.since.toLocaleString()} to ${found.until.toLocaleString()} (${(found.until - found.since).toLocaleString()}); ${made.copyPlace(found)}, ${model.place(found.instruction)}. ${model.trace.code[found.instruction]?.text ?? ""}`;
          tellAt(event.clientX, event.clientY, text, HELP.in_flight.text);
        }}
        onPointerLeave={hideTip}
      />
    </div>
  );
}

function drawCopies(canvas: HTMLCanvasElement, rows: readonly CopySpan[][], [from, to]: Range): void {
  const { box, pen, colour } = penOf(canvas);
  const width = box.width - LEFT - RIGHT;
  const x = (cycle: number) => LEFT + ((cycle - from) / (to - from)) * width;
  pen.textBaseline = "middle";
  pen.font = "9px ui-sans-serif, system-ui, sans-serif";
  rows.forEach((row, number) => {
    const y = number * ROW;
    pen.fillStyle = colour("--soft");
    pen.fillText(`copy ${number}`, 8, y + ROW / 2);
    pen.fillStyle = colour("--memory");
    for (const one of row) {
      const left = Math.max(LEFT, x(one.since));
      const right = Math.min(LEFT + width, x(one.until));
      // A gap between a copy and the one behind it, where there is space.
      const gap = right - left > 3 ? 1 : 0;
      if (right > left) pen.fillRect(left, y + 2, Math.max(0.5, right - left - gap), ROW - 4);
    }
  });
}

function copyAt(rows: readonly CopySpan[][], event: MouseEvent, [from, to]: Range): CopySpan | null {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  const cycle = from + ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * (to - from);
  const row = rows[Math.floor((event.clientY - box.top) / ROW)];
  return row?.find((one) => cycle >= one.since && cycle < one.until) ?? null;
}
