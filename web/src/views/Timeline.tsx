// Warps over steps, drawn once for what is in sight; only the cursor moves from step to step.

import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { count } from "../bits.ts";
import { EVENTS, upper, type EventKind, type Model } from "../model.ts";
import { stepOf } from "./tracks.ts";
import { batchGo, goTo, time, warp as chosenWarp, zoom } from "../state.ts";
import { tip } from "../help.ts";
import { hideTip, tellAt } from "../tips.ts";
import { initials } from "../words.ts";

const LEFT = 92;
const MARKS = 20;
const AXIS = 18;
/** Rows that are in sight without scrolling. */
const MOST_ROWS = 8;

export const GLYPHS: Record<EventKind, string> = {
  divergence: "◇",
  reconvergence: "◆",
  barrier: "‖",
  conflict: "▲",
  uncoalesced: "△",
  fault: "✕",
};

interface Look {
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly arithmetic: string;
  readonly memory: string;
  readonly shared: string;
  readonly control: string;
  readonly wait: string;
  readonly bad: string;
  readonly ground: string;
}

function look(): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: of("--ink"),
    soft: of("--soft"),
    line: of("--line"),
    arithmetic: of("--arithmetic"),
    memory: of("--memory"),
    shared: of("--shared"),
    control: of("--control"),
    wait: of("--wait"),
    bad: of("--bad"),
    ground: of("--ground"),
  };
}

export function Timeline({ model }: { model: Model }) {
  const still = useRef<HTMLCanvasElement>(null);
  const moving = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const [back, front] = [still.current!, moving.current!];
    const scroll = back.closest<HTMLElement>(".scroll")!;
    const size = () => {
      const box = back.parentElement!.getBoundingClientRect();
      for (const canvas of [back, front]) {
        canvas.width = Math.max(1, Math.round(box.width * devicePixelRatio));
        canvas.height = Math.max(1, Math.round(box.height * devicePixelRatio));
      }
      return box;
    };
    let box = size();
    const redraw = () => drawStill(back, model, box, scroll.scrollTop);
    const point = () => drawCursor(front, model, box, scroll.scrollTop, time.value, chosenWarp.value);
    const stopStill = effect(() => {
      void zoom.value;
      redraw();
    });
    const stopScroll = effect(() => reveal(scroll, model, chosenWarp.value));
    const stopCursor = effect(point);
    const scrolled = () => {
      redraw();
      point();
    };
    const again = () => {
      box = size();
      scrolled();
    };
    scroll.addEventListener("scroll", scrolled);
    const watch = new ResizeObserver(again);
    watch.observe(back.parentElement!);
    const themed = new MutationObserver(again);
    themed.observe(document.documentElement, { attributes: true });
    return () => {
      stopStill();
      stopScroll();
      stopCursor();
      scroll.removeEventListener("scroll", scrolled);
      watch.disconnect();
      themed.disconnect();
    };
  }, [model]);

  const at = (event: PointerEvent | WheelEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const [from, to] = zoom.value ?? wholeOf(model);
    const share = Math.min(1, Math.max(0, (event.clientX - box.left - LEFT) / (box.width - LEFT - 8)));
    const position = Math.floor(from + share * (to - from));
    return { box, position, step: model.spins.stepAt(position) };
  };
  const rowAt = (event: PointerEvent, box: DOMRect) => {
    const row = Math.floor((event.clientY - box.top - MARKS) / rowHeight(model));
    return row >= 0 && row < model.trace.warps.length ? row : undefined;
  };
  const point = (event: PointerEvent) => {
    const { box, step } = at(event);
    if (event.buttons & 1) return goTo(step);
    const row = rowAt(event, box);
    const steps = row === undefined ? [] : model.stepsOf(row);
    const its = steps[upper(steps, step) - 1];
    if (its === undefined || event.clientX < box.left + LEFT) return hideTip();
    const unit = UNITS.find(([colour]) => colour === model.unitOf(model.instruction[its]!))![1];
    tellAt(event.clientX, event.clientY, `Step ${its + 1} (${unit}): ${model.code(its).text}`, `${count(model.stateOf(its).active)} active lanes`);
  };
  const pick = (event: PointerEvent) => {
    const { box, step } = at(event);
    const row = rowAt(event, box);
    const pinned = still.current!.getBoundingClientRect();
    const inMarks = event.clientY - pinned.top < MARKS;
    batchGo(inMarks ? nearestEvent(model, step, lengthOf(zoom.value ?? wholeOf(model))) : step, inMarks ? undefined : row);
  };
  return (
    <div class="timeline-view">
      <Key />
      <div class="scroll" style={{ height: `${heightInSight(model)}px` }}>
        <div
      class="timeline"
      style={{ height: `${heightFor(model)}px` }}
      role="slider"
      tabIndex={0}
      aria-label="Timeline of the launch"
      aria-valuemin={0}
      aria-valuemax={model.count}
      aria-valuenow={time.value}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        pick(event);
      }}
      onPointerMove={point}
      onPointerLeave={hideTip}
      onWheel={(event) => {
        event.preventDefault();
        const [from, to] = zoom.value ?? wholeOf(model);
        const { position } = at(event);
        const scale = event.deltaY > 0 ? 1.25 : 0.8;
        const length = Math.max(24, (to - from) * scale);
        const whole = lengthOf(wholeOf(model));
        if (length >= whole) zoom.value = null;
        else {
          const first = Math.max(0, Math.min(whole - length, position - ((position - from) / (to - from)) * length));
          zoom.value = [first, first + length];
        }
      }}
    >
      <div class="pinned" style={{ height: `${heightInSight(model)}px` }}>
        <canvas ref={still} />
        <canvas ref={moving} />
      </div>
        </div>
      </div>
    </div>
  );
}

const UNITS: readonly (readonly [string, string])[] = [
  ["arithmetic", "arithmetic"],
  ["memory", "global and local memory"],
  ["shared", "shared memory, textures"],
  ["control", "control"],
  ["wait", "barrier"],
];

function Key() {
  return (
    <div class="keys-of-timeline">
      <span {...tip("warps")} tabIndex={0} role="note">
        Warps over steps, in simulation order (not over time)
      </span>
      <ul class="key" aria-label="Colours and marks">
        {UNITS.map(([colour, name]) => (
          <li key={name}>
            <i style={{ background: `var(--${colour})` }} /> {name}
          </li>
        ))}
        {EVENTS.map((kind) => (
          <li key={kind} {...tip(kind)}>
            <span>{GLYPHS[kind]}</span> {kind}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The positions of all steps that are shown (`Spins.position`). */
function wholeOf(model: Model): readonly [number, number] {
  return [0, model.spins.position(model.count)];
}

function lengthOf([from, to]: readonly [number, number]): number {
  return to - from;
}

/** Bring the row of a warp into sight. */
function reveal(scroll: HTMLElement, model: Model, warp: number): void {
  const height = rowHeight(model);
  const top = MARKS + warp * height;
  if (top < scroll.scrollTop + MARKS) scroll.scrollTop = top - MARKS;
  else if (top + height + AXIS > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + height + AXIS - scroll.clientHeight;
}

/** Space for the marks, a row for each warp, and the axis. */
function heightFor(model: Model): number {
  return MARKS + Math.max(1, model.trace.warps.length) * rowHeight(model) + AXIS;
}

/** As much of that as is in sight at once. */
function heightInSight(model: Model): number {
  return Math.min(heightFor(model), MARKS + MOST_ROWS * rowHeight(model) + AXIS);
}

function rowHeight(model: Model): number {
  return model.trace.warps.length > 6 ? 12 : 16;
}

function nearestEvent(model: Model, step: number, span: number): number {
  const steps = model.events.step;
  const next = upper(steps, step - 1);
  const [a, b] = [steps[next - 1], steps[next]];
  const near = a !== undefined && (b === undefined || step - a < b - step) ? a : b;
  return near !== undefined && Math.abs(near - step) < span / 40 ? near : step;
}

function drawStill(canvas: HTMLCanvasElement, model: Model, box: DOMRect, scrolled: number): void {
  const pen = canvas.getContext("2d")!;
  const colours = look();
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  const height = rowHeight(model);
  const [from, to] = zoom.peek() ?? wholeOf(model);
  const width = box.width - LEFT - 8;
  const scale = width / Math.max(1, to - from);
  pen.font = `${height < 12 ? 9 : 11}px ui-sans-serif, system-ui, sans-serif`;
  pen.textBaseline = "middle";
  pen.save();
  clipRows(pen, box);
  const first = Math.floor(scrolled / height);
  const last = Math.min(model.trace.warps.length, Math.ceil((scrolled + box.height) / height));
  for (let row = first; row < last; row++) {
    const y = MARKS + row * height - scrolled;
    pen.fillStyle = colours.soft;
    const one = model.trace.warps[row]!;
    pen.fillText(`${initials("block")}${one.block} ${initials("warp")}${one.warp}`, 10, y + height / 2);
    pen.fillStyle = colours.line;
    pen.fillRect(LEFT, y + height - 1.5, width, 0.6);
    drawRow(pen, model, row, { y, height: height - 3, from, to, scale, colours, width });
  }
  pen.restore();
  drawSpins(pen, model, box, from, to, scale, colours);
  drawMarks(pen, model, from, to, scale, colours);
  drawAxis(pen, model, box.height - AXIS, [from, to], scale, colours);
}

/** Keep rows from what is drawn above and below them. */
function clipRows(pen: CanvasRenderingContext2D, box: DOMRect): void {
  pen.beginPath();
  pen.rect(0, MARKS, box.width, box.height - MARKS - AXIS);
  pen.clip();
}

/** Numbers of steps below the rows. */
function drawAxis(pen: CanvasRenderingContext2D, model: Model, top: number, [from, to]: readonly [number, number], scale: number, colours: Look): void {
  const every = stepOf((to - from) / 8);
  pen.fillStyle = colours.soft;
  pen.font = "10px ui-sans-serif, system-ui, sans-serif";
  pen.fillText("step", 10, top + AXIS / 2);
  pen.textAlign = "center";
  for (let position = Math.ceil(from / every) * every; position < to; position += every) {
    const x = LEFT + (position - from + 0.5) * scale;
    pen.fillRect(x - 0.3, top, 0.6, 4);
    pen.fillText((model.spins.stepAt(position) + 1).toLocaleString(), Math.max(LEFT + 8, x), top + 11);
  }
  pen.textAlign = "start";
}

/** A gap in the axis where steps of a loop that changes nothing are left out. */
function drawSpins(pen: CanvasRenderingContext2D, model: Model, box: DOMRect, from: number, to: number, scale: number, colours: Look): void {
  pen.strokeStyle = colours.ink;
  pen.lineWidth = 1;
  pen.setLineDash([3, 3]);
  for (const spin of model.spins.all) {
    const position = model.spins.position(spin.first);
    if (position < from || position > to) continue;
    const x = LEFT + (position - from) * scale;
    pen.beginPath();
    pen.moveTo(x, MARKS);
    pen.lineTo(x, box.height - AXIS);
    pen.stroke();
  }
  pen.setLineDash([]);
}

interface RowLook {
  readonly y: number;
  readonly height: number;
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  readonly width: number;
  readonly colours: Look;
}

/** One warp: where steps are wide, a bar for each; where they are narrow, one for each pixel. */
function drawRow(pen: CanvasRenderingContext2D, model: Model, row: number, at: RowLook): void {
  const steps = model.stepsOf(row);
  const { spins } = model;
  let nth = upper(steps, spins.stepAt(Math.floor(at.from)) - 1);
  const last = spins.stepAt(Math.ceil(at.to));
  const bar = Math.max(1, at.scale - (at.scale > 4 ? 1 : 0));
  while (nth < steps.length && steps[nth]! < last) {
    const step = steps[nth]!;
    const spin = spins.at(step);
    if (spin) {
      nth = upper(steps, spin.stop - 1);
      continue;
    }
    const x = Math.floor((spins.position(step) - at.from) * at.scale);
    const lanes = count(model.stateOf(step).active) / 32;
    pen.fillStyle = at.colours[model.unitOf(model.instruction[step]!)];
    const tall = Math.max(1.5, lanes * at.height);
    pen.fillRect(LEFT + x, at.y + at.height - tall, bar, tall);
    // Steps that fall into the same pixel are passed over: their warp is drawn here already.
    nth = at.scale >= 1 ? nth + 1 : Math.max(nth + 1, upper(steps, spins.stepAt(Math.ceil(at.from + (x + 1) / at.scale - 1e-9) - 1)));
  }
}

function drawMarks(pen: CanvasRenderingContext2D, model: Model, from: number, to: number, scale: number, colours: Look): void {
  const { step, kind } = model.events;
  pen.textAlign = "center";
  pen.font = "12px ui-sans-serif, system-ui, sans-serif";
  let last = -99;
  const { spins } = model;
  for (let i = upper(step, spins.stepAt(Math.floor(from)) - 1); i < step.length && step[i]! <= spins.stepAt(Math.ceil(to)); i++) {
    if (spins.at(step[i]!)) continue;
    const x = LEFT + (spins.position(step[i]!) - from + 0.5) * scale;
    const fault = EVENTS[kind[i]!] === "fault";
    if (x - last < 9 && !fault) continue;
    last = x;
    const name = EVENTS[kind[i]!]!;
    pen.fillStyle = name === "fault" || name === "conflict" || name === "uncoalesced" ? colours.bad : name === "barrier" ? colours.wait : colours.ink;
    pen.fillText(GLYPHS[name], x, MARKS / 2);
  }
  pen.textAlign = "start";
}

function drawCursor(canvas: HTMLCanvasElement, model: Model, box: DOMRect, scrolled: number, now: number, warp: number): void {
  const pen = canvas.getContext("2d")!;
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  const [from, to] = zoom.peek() ?? wholeOf(model);
  const position = model.spins.position(now);
  const scale = (box.width - LEFT - 8) / Math.max(1, to - from);
  const x = LEFT + (position - from + 0.5) * scale;
  const height = rowHeight(model);
  const colours = look();
  pen.fillStyle = colours.ink;
  if (position >= from && position <= to) pen.fillRect(x - 0.75, MARKS - 4, 1.5, box.height - MARKS - AXIS + 4);
  pen.save();
  clipRows(pen, box);
  if (warp < model.trace.warps.length) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(4, MARKS + warp * height - scrolled + 0.5, box.width - 8, height - 1);
  }
  pen.restore();
}
