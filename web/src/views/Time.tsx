// Modelled time: a track for each warp slot of an SM, over its cycles.

import { useRef } from "preact/hooks";
import { HELP, tip, type HelpKey } from "../help.ts";
import { readable, type Modelled } from "../modelled.ts";
import type { Model } from "../model.ts";
import { chosenSpan, cycles, labels, other, pickSpan, warp } from "../state.ts";
import { hideTip, tellAt } from "../tips.ts";
import { Copies } from "./Copies.tsx";
import { useDrawing } from "./drawing.ts";
import { FAINT, LOOKS } from "./states.ts";
import { AXIS, drawTracks, heightOf, LEFT, RIGHT, rowHeight, type Range } from "./tracks.ts";

/** Cycles in sight, at least. */
const LEAST = 16;

/** The schedulers that have a longer name. */
const SCHEDULERS: Readonly<Record<string, string>> = { lrr: "lrr (loose round-robin)", gto: "gto (greedy, then oldest)" };

export function Time({ model, made }: { model: Model; made: Modelled }) {
  return (
    <div class="time">
      <Facts model={model} made={made} />
      {other.value?.trace.modelled && <Beside own={made.facts.cycles} others={other.value.trace.modelled.cycles} />}
      <Tools made={made} />
      <Tracks made={made} />
      {made.copies.length > 0 && <Copies model={model} made={made} />}
      <Legend made={made} />
    </div>
  );
}

/** The cycles of both runs of a comparison, as bars of one scale. */
function Beside({ own, others }: { own: number; others: number }) {
  const most = Math.max(own, others);
  return (
    <div class="beside">
      {[own, others].map((each, side) => (
        <p key={side}>
          {labels.value[side] ?? (side ? "the other run" : "this run")}: <b>{each.toLocaleString()} cycles</b>
          <span class="bar">
            <i style={{ width: `${(100 * each) / most}%` }} />
          </span>
        </p>
      ))}
    </div>
  );
}

function Facts({ model, made }: { model: Model; made: Modelled }) {
  const facts = made.facts;
  const part = facts.sampled_blocks < facts.blocks;
  const seconds = facts.cycles / facts.clock_mhz;
  return (
    <div class="facts">
      <h3>
        Modelled time <em>from a replay of the launch on a model of the device; not measured</em>
      </h3>
      <p>
        {model.trace.device.title}, scheduler {SCHEDULERS[facts.scheduler] ?? facts.scheduler}: <b>{facts.cycles.toLocaleString()} cycles</b> ({seconds.toLocaleString(undefined, { maximumSignificantDigits: 3 })} µs at{" "}
        {facts.clock_mhz.toLocaleString()} MHz). {facts.sms === 1 ? `All blocks ran on SM ${facts.sm}.` : `SM ${facts.sm} is shown; ${facts.sms.toLocaleString()} SMs ran blocks.`}
        {part && ` The first ${facts.sampled_blocks.toLocaleString()} of ${facts.blocks.toLocaleString()} blocks were replayed; the cycles of the launch are extrapolated.`}
      </p>
      {model.trace.device.independent && model.diverges && (
        <p class="note">The model executes the sides of a divergent branch one after the other. On compute capability 7.0 and later, hardware may overlap the sides of a branch, but no published source contains measurements of this overlap.</p>
      )}
      {facts.left_out > 0 && (
        <p class="note">
          Only the first {facts.count.toLocaleString()} states of this SM's warps were stored. The remaining {facts.left_out.toLocaleString()} warp cycles are not shown.
        </p>
      )}
    </div>
  );
}

/** Look closer, or further along; what is marked, in words. */
function Tools({ made }: { made: Modelled }) {
  const at = chosenSpan.value;
  const details = at === null ? null : made.describe(at);
  return (
    <div class="tools">
      <button aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(made, 0.5)}>
        +
      </button>
      <button aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy(made, 2)} disabled={cycles.value === null}>
        −
      </button>
      <button aria-label="Earlier cycles" title="Earlier cycles" onClick={() => panBy(made, -0.5)} disabled={cycles.value === null}>
        ←
      </button>
      <button aria-label="Later cycles" title="Later cycles" onClick={() => panBy(made, 0.5)} disabled={cycles.value === null}>
        →
      </button>
      <button onClick={() => (cycles.value = null)} title="All cycles (0)" disabled={cycles.value === null}>
        All
      </button>
      <p class="span-details" role="status">
        {details ? (
          <>
            <b>{details.title}</b> <span>{details.where}</span> <code>{details.code}</code>
          </>
        ) : (
          "This step has no modelled time. Click in a track to choose a step that has one."
        )}
      </p>
    </div>
  );
}

function Tracks({ made }: { made: Modelled }) {
  const place = useRef<HTMLCanvasElement>(null);
  useDrawing(
    place,
    (canvas) => drawTracks(canvas, made, inSight(made), { span: chosenSpan.value, warp: made.spansOf(warp.value) }),
    made,
  );
  return (
    <canvas
      ref={place}
      class="tracks"
      style={{ height: `${heightOf(made)}px` }}
      role="application"
      tabIndex={0}
      aria-label={`Modelled states of the warps of SM ${made.facts.sm}. The arrow keys move from state to state and from slot to slot; plus and minus zoom.`}
      onPointerMove={(event) => {
        const found = spanAt(made, event);
        if (found === null) return hideTip();
        const { title, where, code } = made.describe(found);
        tellAt(event.clientX, event.clientY, `Modelled: ${title}; ${where}. ${code}`, helpOf(made, found));
      }}
      onPointerLeave={hideTip}
      onClick={(event) => {
        const found = spanAt(made, event);
        if (found !== null) pickSpan(found);
      }}
      onWheel={(event) => {
        event.preventDefault();
        zoomBy(made, event.deltaY > 0 ? 1.25 : 0.8, cycleAt(made, event));
      }}
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || !pressed(made, event.key)) return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

function Legend({ made }: { made: Modelled }) {
  const totals = made.totals();
  const whole = totals.reduce((sum, one) => sum + one.cycles, 0);
  return (
    <ul class="legend" aria-label="States">
      {totals.map(({ name, cycles: own }) => {
        const look = LOOKS[name]!;
        const share = own / whole < 0.0005 ? "< 0.1 %" : `${((100 * own) / whole).toFixed(1)} %`;
        return (
          <li key={name} data-state={name} tabIndex={0} {...tip(stateHelp(name), `${readable(name)}: ${share} of these warps' cycles.`)}>
            <i class={look.pattern ?? ""} style={{ "--state": `var(${look.colour})`, height: `${12 * look.tall}px`, opacity: look.faint ? FAINT : 1 }} />
            {readable(name)} <b>{share}</b>
          </li>
        );
      })}
    </ul>
  );
}

function helpOf(made: Modelled, span: number): string {
  return HELP[stateHelp(made.facts.states[made.state[span]!]!)].text;
}

function stateHelp(state: string): HelpKey {
  return `state_${state}` as HelpKey;
}

// ---- what is in sight ------------------------------------------------------------------------

function inSight(made: Modelled): Range {
  return cycles.value ?? made.range;
}

/** Show so many times as many cycles, with one of them where it is. */
function zoomBy(made: Modelled, scale: number, around?: number): void {
  const [from, to] = inSight(made);
  const length = Math.max(LEAST, (to - from) * scale);
  const at = around ?? middleOf(made);
  show(made, at - ((at - from) / (to - from)) * length, length);
}

function panBy(made: Modelled, share: number): void {
  const [from, to] = inSight(made);
  show(made, from + share * (to - from), to - from);
}

function show(made: Modelled, from: number, length: number): void {
  const [first, last] = made.range;
  const start = Math.max(first, Math.min(last - length, from));
  cycles.value = length >= last - first ? null : [start, start + length];
}

/** Around what buttons zoom: what is marked, where it is in sight. */
function middleOf(made: Modelled): number {
  const [from, to] = inSight(made);
  const at = chosenSpan.value === null ? from : made.since[chosenSpan.value]!;
  return at > from && at < to ? at : (from + to) / 2;
}

function cycleAt(made: Modelled, event: MouseEvent): number {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  const [from, to] = inSight(made);
  return from + ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * (to - from);
}

function spanAt(made: Modelled, event: MouseEvent): number | null {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - AXIS) / rowHeight(made));
  const cycle = cycleAt(made, event);
  const [from, to] = inSight(made);
  if (!made.rows[row] || cycle < from || cycle >= to) return null;
  return made.at(row, Math.floor(cycle));
}

// ---- keys ------------------------------------------------------------------------------------

/** Do what a key says; whether it says anything here. */
function pressed(made: Modelled, key: string): boolean {
  const at = chosenSpan.value ?? 0;
  const row = made.rows.findIndex(([, stop]) => at < stop);
  if (key === "ArrowRight") goTo(made, Math.min(at + 1, made.rows[row]![1] - 1));
  else if (key === "ArrowLeft") goTo(made, Math.max(at - 1, made.rows[row]![0]));
  else if (key === "ArrowDown" || key === "ArrowUp") goTo(made, beside(made, at, row + (key === "ArrowDown" ? 1 : -1)));
  else if (key === "+" || key === "=") zoomBy(made, 0.5);
  else if (key === "-") zoomBy(made, 2);
  else if (key === "0") cycles.value = null;
  else return false;
  return true;
}

/** What another row has at the cycle of a span; the span itself where there is nothing. */
function beside(made: Modelled, span: number, row: number): number {
  return made.rows[row] ? (made.at(row, made.since[span]!) ?? made.rows[row][0]) : span;
}

function goTo(made: Modelled, span: number): void {
  pickSpan(span);
  const [from, to] = inSight(made);
  const at = made.since[span]!;
  if (at < from || at >= to) show(made, at - (to - from) / 2, to - from);
}
