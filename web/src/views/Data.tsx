// The contents of memory: an array as a grid of its elements, at the step that is shown.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { bytesOf, dataOf, type ArrayView, type Cell, type Data as Memory } from "../data.ts";
import { tip } from "../help.ts";
import type { Model } from "../model.ts";
import { chosenArray, shownFinding } from "../state.ts";
import { elementShown } from "../values.ts";
import type { Fault, Finding } from "../schema.ts";
import { threadOf } from "./Findings.tsx";

/** Elements that are shown at once. */
const PAGE = 4096;
const LEFT = 44;
/** About how wide a digit is. */
const LETTER = 6.4;
const TOP = 16;

/** The element under the cursor of the keyboard or of the pointer, and the page of the array. */
const cursor = signal(0);
const page = signal(0);

interface Shown {
  readonly model: Model;
  readonly warp: number;
  readonly time: number;
  readonly compact?: boolean;
}

export function Data(props: Shown) {
  if (dataOf(props.model).arrays.length === 0) return <p class="empty">The launch has no arrays.</p>;
  return <Contents {...props} />;
}

function Contents({ model, warp, time, compact = false }: Shown) {
  const data = dataOf(model);
  const array = chosen(data, warp, time);
  const elements = data.elements(array);
  const first = elements > PAGE ? Math.min(page.value, Math.floor((elements - 1) / PAGE)) * PAGE : 0;
  const cells = data.cells(array, first, Math.min(elements, first + PAGE), time);
  const raced = racesIn(model, array);
  const about = shownFinding.value;
  const fault = model.faultAt(time);
  useEffect(() => {
    const element = [...raced].find(([, one]) => one === about)?.[0] ?? (fault ? elementNear(array, fault.address) : undefined);
    if (element === undefined) return;
    cursor.value = element;
    page.value = Math.floor(element / PAGE);
  }, [about, fault, array]);
  const at = Math.max(first, Math.min(cursor.value, first + cells.length - 1));
  return (
    <div class="data">
      <Arrays data={data} shown={array} />
      {fault && <Missed model={model} fault={fault} />}
      {!compact && <p class="note">{describe(array)}</p>}
      <Grid array={array} cells={cells} first={first} at={at} time={time} raced={new Set(raced.keys())} />
      <p class="cell">
        <label>
          element{" "}
          <input
            type="number"
            min="0"
            max={elements - 1}
            value={at}
            onInput={(event) => {
              cursor.value = Number(event.currentTarget.value);
              page.value = Math.floor(cursor.value / PAGE);
            }}
          />
        </label>{" "}
        <output>{cells.length > 0 ? cellText(model, array, at, cells[at - first]!, time) + raceText(model, raced.get(at)) : "The array has no elements."}</output>
      </p>
      {elements > PAGE && <Pages elements={elements} first={first} />}
    </div>
  );
}

function chosen(data: Memory, warp: number, time: number): ArrayView {
  const asked = data.arrays.find((one) => one.name === chosenArray.value);
  return asked ?? data.reachedAt(warp, time) ?? data.missedAt(time) ?? data.arrays[0]!;
}

/** The element that is closest to an address; none for an address in the memory of another array. */
function elementNear(array: ArrayView, address: number): number | undefined {
  if (array.space !== "global") return undefined;
  const width = bytesOf(array.type);
  return Math.max(0, Math.min(Math.floor(array.size / width) - 1, Math.floor((address - array.address) / width)));
}

function describe(array: ArrayView): string {
  const shape = array.shape.length > 1 ? array.shape.join(" × ") : String(Math.floor(array.size / Math.max(1, Number(/\d+$/.exec(array.type)?.[0] ?? 32) / 8)));
  return `${array.space === "shared" ? "shared memory" : "global memory"} · ${array.type} · ${shape}`;
}

function Arrays({ data, shown }: { data: Memory; shown: ArrayView }) {
  return (
    <div class="arrays" role="group" aria-label="Arrays">
      {data.arrays.slice(0, 24).map((one) => (
        <button key={one.id} translate={false} aria-pressed={one.id === shown.id} onClick={() => (chosenArray.value = chosenArray.value === one.name ? null : one.name)}>
          {one.name}
        </button>
      ))}
    </div>
  );
}

function Pages({ elements, first }: { elements: number; first: number }) {
  return (
    <p class="pages">
      <button disabled={first === 0} onClick={() => (page.value = first / PAGE - 1)}>
        Previous
      </button>{" "}
      elements {first.toLocaleString()} to {Math.min(elements, first + PAGE).toLocaleString()} of {elements.toLocaleString()}{" "}
      <button disabled={first + PAGE >= elements} onClick={() => (page.value = first / PAGE + 1)}>
        Next
      </button>
    </p>
  );
}

/** An element by its indices. */
function nameOf(array: ArrayView, element: number): string {
  if (array.shape.length < 2) return `${array.name}[${element}]`;
  const indices: number[] = [];
  let rest = element;
  for (const size of [...array.shape].reverse()) {
    indices.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `${array.name}${indices.map((one) => `[${one}]`).join("")}`;
}

function cellText(model: Model, array: ArrayView, element: number, cell: Cell, time: number): string {
  const value = cell.value === null ? "value not recorded" : elementShown(cell.value, array.type);
  const change = cell.written?.step === time && cell.before !== null ? ` (before: ${elementShown(cell.before, array.type)})` : "";
  const who = (verb: string, touch: Cell["read"]) => {
    if (!touch) return `not ${verb} yet`;
    const when = touch.step === time ? "now" : `at step ${(touch.step + 1).toLocaleString()}`;
    return `${verb} ${when} by lane ${touch.lane} of ${model.warpName(model.warp[touch.step]!)}`;
  };
  const wrong = cell.unwritten ? " · read before anything was written to it" : "";
  return `${nameOf(array, element)} = ${value}${change} · ${who("written", cell.written)} · ${who("read", cell.read)}${wrong}`;
}

/** The findings about elements of an array, by element. */
function racesIn(model: Model, array: ArrayView): Map<number, Finding> {
  const found = new Map<number, Finding>();
  const start = array.space === "shared" ? array.address : 0;
  for (const one of model.trace.findings ?? []) {
    const here = array.space === "shared" ? one.parties[0]?.block === array.block : one.buffer === array.name;
    if (one.space !== array.space || !here || one.offset < start || one.offset >= start + array.size) continue;
    const width = bytesOf(array.type);
    const last = Math.floor((one.offset - start + Math.max(1, one.size) - 1) / width);
    for (let element = Math.floor((one.offset - start) / width); element <= last; element++) if (!found.has(element)) found.set(element, one);
  }
  return found;
}

function raceText(model: Model, found: Finding | undefined): string {
  if (!found) return "";
  return ` · ${found.kind}: ${found.parties.map((party) => threadOf(model, party)).join("; ")}`;
}

function Missed({ model, fault }: { model: Model; fault: Fault }) {
  return (
    <p class="fault">
      ✕ Thread {fault.thread} of block {fault.block} accessed {model.around(fault.address)}.
    </p>
  );
}

interface Layout {
  readonly columns: number;
  readonly width: number;
  readonly height: number;
}

/** How large a cell is drawn, for so much space. */
function layoutOf(array: ArrayView, cells: readonly Cell[], available: number): Layout {
  let columns = Math.max(1, Math.min(array.width, cells.length));
  // A row of an array without rows of its own may be as short as its values need.
  const longest = array.shape.length > 1 ? 0 : cells.reduce((most, cell) => Math.max(most, cell.value === null ? 1 : elementShown(cell.value, array.type).length), 0);
  while (columns > 8 && (available - LEFT - 4) / columns < longest * LETTER + 5) columns = Math.ceil(columns / 2);
  const width = Math.max(6, Math.min(Math.max(52, longest * LETTER + 8), (available - LEFT - 4) / columns));
  return { columns, width, height: width < 18 ? Math.max(8, width) : 22 };
}

function Grid(props: { array: ArrayView; cells: readonly Cell[]; first: number; at: number; time: number; raced: ReadonlySet<number> }) {
  const { array, cells, first, at, time, raced } = props;
  const place = useRef<HTMLCanvasElement>(null);
  const layout = useRef<Layout>({ columns: 1, width: 1, height: 1 });
  const draw = useRef(() => {});
  draw.current = () => {
    const canvas = place.current;
    if (!canvas) return;
    layout.current = layoutOf(array, cells, canvas.parentElement!.clientWidth);
    drawCells(canvas, { array, cells, first, at, time, raced }, layout.current);
  };
  useLayoutEffect(() => draw.current(), [array, cells, at, time]);
  useEffect(() => {
    const around = place.current?.parentElement;
    if (!around) return;
    let wide = around.clientWidth;
    const watch = new ResizeObserver(([entry]) => {
      if (entry!.contentRect.width !== wide) draw.current();
      wide = entry!.contentRect.width;
    });
    watch.observe(around);
    const themed = new MutationObserver(() => draw.current());
    themed.observe(document.documentElement, { attributes: true });
    return () => {
      watch.disconnect();
      themed.disconnect();
    };
  }, []);
  const point = (event: PointerEvent) => {
    const box = place.current!.getBoundingClientRect();
    const { columns, width, height } = layout.current;
    const column = Math.floor((event.clientX - box.left - LEFT) / width);
    const row = Math.floor((event.clientY - box.top - TOP) / height);
    if (column >= 0 && column < columns && row >= 0 && row * columns + column < cells.length) cursor.value = first + row * columns + column;
  };
  const move = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.current.columns, ArrowDown: layout.current.columns };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    cursor.value = Math.max(first, Math.min(first + cells.length - 1, at + by));
  };
  return (
    <div class="grid-of-cells">
      <canvas
        ref={place}
        tabIndex={0}
        role="img"
        {...tip("cell")}
        aria-label={`${array.name}, ${cells.length} elements. Arrow keys move from element to element.`}
        onPointerMove={point}
        onKeyDown={move}
      />
    </div>
  );
}

/** Shades of a value. */
const SHADES = 24;

interface Drawn {
  readonly array: ArrayView;
  readonly cells: readonly Cell[];
  readonly first: number;
  readonly at: number;
  readonly time: number;
  readonly raced: ReadonlySet<number>;
}

function drawCells(canvas: HTMLCanvasElement, { array, cells, first, at, time, raced }: Drawn, { columns, width, height }: Layout): void {
  const rows = Math.ceil(cells.length / columns);
  const [wide, high] = [LEFT + columns * width + 2, TOP + rows * height + 4];
  const size = [Math.round(wide * devicePixelRatio), Math.round(high * devicePixelRatio)] as const;
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    [canvas.width, canvas.height] = size;
  }
  const pen = canvas.getContext("2d")!;
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.clearRect(0, 0, wide, high);
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const [ink, soft, line, memory, bad] = ["--ink", "--soft", "--line", array.space === "shared" ? "--shared" : "--memory", "--bad"].map(colour) as [string, string, string, string, string];
  const numbers = cells.map((cell) => (cell.value === null ? NaN : Number(cell.value)));
  const finite = numbers.filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), 0);
  const span = finite.reduce((a, b) => Math.max(a, b), 0) - low || 1;
  const labelled = width >= 18;
  pen.font = "11px ui-sans-serif, system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  pen.fillStyle = soft;
  for (let row = 0; row < rows; row += labelled ? 1 : Math.ceil(12 / height)) pen.fillText(String(first + row * columns), LEFT - 6, TOP + (row + 0.5) * height);
  pen.textAlign = "center";
  for (let column = 0; column < columns; column += width >= 18 ? 1 : 8) pen.fillText(String(column), LEFT + (column + 0.5) * width, TOP / 2);
  const place = (index: number) => [LEFT + (index % columns) * width, TOP + Math.floor(index / columns) * height] as const;
  const levels = numbers.map((value) => (Number.isFinite(value) ? 1 + Math.round((SHADES - 1) * ((value - low) / span)) : 0));
  for (const level of new Set(levels)) {
    pen.beginPath();
    levels.forEach((own, index) => own === level && pen.rect(...place(index), width - 1, height - 1));
    pen.globalAlpha = level ? 0.1 + (0.3 * level) / SHADES : 1;
    pen.fillStyle = level ? soft : line;
    pen.fill();
  }
  pen.globalAlpha = 1;
  cells.forEach((cell, index) => {
    const [x, y] = place(index);
    if (cell.unwritten) hatch(pen, x, y, width - 1, height - 1, bad);
    if (cell.read?.step === time) {
      pen.fillStyle = memory;
      pen.fillRect(x + 1, y + height - 4, width - 3, 3);
    }
    if (cell.written?.step === time) {
      pen.strokeStyle = memory;
      pen.lineWidth = 2;
      pen.strokeRect(x + 1, y + 1, width - 3, height - 3);
    }
    if (raced.has(first + index)) {
      pen.fillStyle = bad;
      pen.beginPath();
      pen.moveTo(x + width - 1, y);
      pen.lineTo(x + width - 1, y + Math.min(10, height - 1));
      pen.lineTo(x + width - 1 - Math.min(10, width - 1), y);
      pen.fill();
    }
    if (first + index === at) {
      pen.strokeStyle = ink;
      pen.lineWidth = 1;
      pen.setLineDash([2, 2]);
      pen.strokeRect(x + 0.5, y + 0.5, width - 2, height - 2);
      pen.setLineDash([]);
    }
    if (labelled) {
      pen.fillStyle = ink;
      const text = cell.value === null ? "?" : elementShown(cell.value, array.type);
      if (text.length * LETTER <= width - 1) pen.fillText(text, x + width / 2 - 0.5, y + height / 2);
    }
  });
}

function hatch(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, colour: string): void {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = -height; at < width; at += 5) {
    pen.moveTo(x + at, y + height);
    pen.lineTo(x + at + height, y);
  }
  pen.stroke();
  pen.restore();
}
