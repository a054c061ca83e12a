// Draws the tracks of modelled time: what is in sight, and above it the cycles.

import type { Modelled } from "../modelled.ts";
import { upper } from "../model.ts";
import { penOf } from "./drawing.ts";
import { FAINT, fillsOf } from "./states.ts";

export const LEFT = 52;
export const RIGHT = 8;
export const AXIS = 20;

export type Range = readonly [number, number];

/** What is marked: the span that is shown, and the warp that was chosen. */
export interface Marked {
  readonly span: number | null;
  readonly warp: Range | null;
}

/** How high a row is; many of them are narrow. */
export function rowHeight(made: Modelled): number {
  return made.rows.length > 16 ? 11 : 18;
}

export function heightOf(made: Modelled): number {
  return AXIS + made.rows.length * rowHeight(made) + 2;
}

export function drawTracks(canvas: HTMLCanvasElement, made: Modelled, [from, to]: Range, marked: Marked): void {
  const { box, pen, colour } = penOf(canvas);
  const width = box.width - LEFT - RIGHT;
  const x = (cycle: number) => LEFT + ((cycle - from) / (to - from)) * width;
  const height = rowHeight(made);
  pen.textBaseline = "middle";
  drawAxis(pen, [from, to], x, colour("--soft"), colour("--line"), box.height);
  const fills = fillsOf(pen, made.facts.states);
  made.rows.forEach(([first, stop], row) => {
    const y = AXIS + row * height;
    pen.fillStyle = colour("--soft");
    pen.font = `${height < 12 ? 9 : 11}px ui-sans-serif, system-ui, sans-serif`;
    pen.fillText(`slot ${made.slots[row]}`, 8, y + height / 2);
    pen.fillStyle = colour("--line");
    pen.fillRect(LEFT, y + height - 1, width, 0.6);
    const begin = first + upper(made.until.subarray(first, stop), from);
    for (const [state, left, right] of bars(made, begin, stop, to, x)) {
      const { fill, look } = fills[state]!;
      const tall = look.tall * (height - 2);
      pen.fillStyle = fill;
      pen.globalAlpha = look.faint ? FAINT : 1;
      pen.fillRect(Math.max(LEFT, left), y + height - 1 - tall, Math.min(right, LEFT + width) - Math.max(LEFT, left), tall);
      pen.globalAlpha = 1;
    }
  });
  mark(pen, made, marked, [LEFT, LEFT + width], x, colour("--ink"), colour("--accent"));
}

/** What to draw of a row: a bar for each span or, where several begin in one pixel, for the state
 * that has most of it. */
function* bars(made: Modelled, first: number, stop: number, to: number, x: (cycle: number) => number): Generator<[number, number, number]> {
  let span = first;
  while (span < stop && made.since[span]! < to) {
    const left = x(made.since[span]!);
    const right = x(made.until[span]!);
    if (right - left >= 1) {
      yield [made.state[span]!, left, right];
      span++;
      continue;
    }
    const sums = new Map<number, number>();
    const start = made.since[span]!;
    let end = start;
    // A warp that follows after a gap begins a bar of its own.
    while (span < stop && made.since[span]! - end <= 0 && x(made.until[span]!) - left < 1) {
      sums.set(made.state[span]!, (sums.get(made.state[span]!) ?? 0) + made.until[span]! - made.since[span]!);
      end = made.until[span]!;
      span++;
    }
    if (sums.size === 0) {
      span++;
      continue;
    }
    const [state] = [...sums].reduce((a, b) => (b[1] > a[1] ? b : a));
    yield [state, left, Math.max(x(end), left + 0.5)];
  }
}

function drawAxis(pen: CanvasRenderingContext2D, [from, to]: Range, x: (cycle: number) => number, ink: string, line: string, height: number): void {
  pen.font = "10px ui-sans-serif, system-ui, sans-serif";
  const step = stepOf((to - from) / 6);
  for (let cycle = Math.ceil(from / step) * step; cycle <= to; cycle += step) {
    pen.fillStyle = line;
    pen.fillRect(x(cycle), AXIS - 4, 0.6, height - AXIS + 4);
    pen.fillStyle = ink;
    const text = cycle.toLocaleString();
    pen.fillText(text, Math.min(x(cycle), x(to) - pen.measureText(text).width), AXIS / 2 - 2);
  }
}

/** One, two or five times a power of ten, as long as that or longer. */
export function stepOf(length: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, length)));
  return power * ([1, 2, 5].find((one) => one * power >= length) ?? 10);
}

function mark(pen: CanvasRenderingContext2D, made: Modelled, marked: Marked, [low, high]: Range, x: (cycle: number) => number, ink: string, accent: string): void {
  const height = rowHeight(made);
  const around = (first: number, last: number, colour: string, width: number) => {
    const row = made.rows.findIndex(([, stop]) => first < stop);
    const left = Math.max(low, x(made.since[first]!)) - 1;
    const right = Math.min(high, x(made.until[last]!)) + 1;
    if (right <= low || left >= high) return;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.strokeRect(left, AXIS + row * height + 0.5, Math.max(2, right - left), height - 1);
  };
  if (marked.warp) around(marked.warp[0], marked.warp[1] - 1, accent, 1);
  if (marked.span !== null) around(marked.span, marked.span, ink, 2);
}
