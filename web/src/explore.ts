// Explorables: which values the controls have, and the launch with these values. It was recorded
// beforehand, or the server runs it: one launch at a time, always the one that was chosen last, then
// those to which a drag comes next, and neighbours while nothing is chosen. While a drag goes on, two
// launches run at a time.

import { batch, computed, signal } from "@preact/signals";
import { resolve, warpOf } from "./anchors.ts";
import { explore, readTrace } from "./load.ts";
import type { Model } from "./model.ts";
import { goTo, model, open, pane, show, warp, type Pane } from "./state.ts";
import type { Control } from "./schema.ts";

export type Values = readonly string[];

/** A launch that can be shown. */
interface Launched {
  readonly values: Values;
  readonly model: Model;
  readonly figure: string;
  readonly curve: number;
  /** The server has run it; else it was recorded beforehand. */
  readonly live: boolean;
}

/** The value of each control. */
export const chosen = signal<Values>([]);

/** The launch that is shown: that with the chosen values, once it is there. */
export const shown = signal<Launched | null>(null);

/** Why there is no launch with the chosen values; empty if there is one, or it is still to come. */
export const refused = computed(() => refusals.value.get(keyOf(chosen.value)) ?? "");

/** The server, which ran other values, does not answer any more. */
export const gone = signal(false);

/** Controls can have all values of their ranges. */
export const live = computed(() => !!show.value?.explorable?.live && !gone.value);

/** Launches that the server has run, and why others did not run; the last MOST are kept. */
const ran = signal<ReadonlyMap<string, Launched>>(new Map());
const refusals = signal<ReadonlyMap<string, string>>(new Map());
const MOST = 256;

/** Milliseconds without a choice after which neighbours of the shown values are run, and how many
 * steps of a slider from them. */
const [IDLE, AHEAD] = [300, 16];

/** Milliseconds after which a run is ended, whose values are not the chosen ones any more; shorter
 * runs are kept for the way back. */
const LATE = 3000;

function keyOf(values: Values): string {
  return values.join(";");
}

function controls(): readonly Control[] {
  return show.value?.explorable?.controls ?? [];
}

/** The number of the recorded launch with these values, the last control's values the fastest; -1
 * for other values. */
function numberOf(values: Values): number {
  const places = controls().map((control, index) => control.values.indexOf(values[index]!));
  return places.includes(-1) ? -1 : places.reduce((number, place, index) => number * controls()[index]!.values.length + place, 0);
}

/** The number of a launch in the curve, if the launch was recorded or has run. */
export function curveOf(values: Values): number | undefined {
  return show.value!.explorable!.curve[numberOf(values)] ?? ran.value.get(keyOf(values))?.curve;
}

/** The values that a slider can have whose launches are there, the other controls as they are. */
export function knownValues(control: number): string[] {
  const same = (values: Values) => values.every((value, other) => other === control || value === chosen.value[other]);
  const others = [...ran.value.values()].filter((one) => same(one.values)).map((one) => one.values[control]!);
  const beforehand = controls()[control]!.values.filter((value) => curveOf(withValue(control, value)) !== undefined);
  return [...new Set([...beforehand, ...others])].sort((a, b) => order(a) - order(b));
}

/** Values of several numbers stand by the first one, larger ones first, as they are recorded. */
function order(value: string): number {
  const [first, second] = value.split(",").map(Number);
  return second === undefined ? first! : -first! + second / 10_000;
}

function withValue(control: number, value: string): Values {
  return chosen.value.map((now, index) => (index === control ? value : now));
}

const read = new Map<number, Promise<Model>>();

async function recorded(number: number, values: Values): Promise<Launched> {
  const { figures, curve } = show.value!.explorable!;
  const found = read.get(number) ?? readTrace(number);
  read.set(number, found);
  return { values, model: await found, figure: figures[number]!, curve: curve[number]!, live: false };
}

/** Choose a value of a control, and show its launch at the step that the page is about. The view
 * that the reader has chosen stays. */
export async function choose(control: number, value: string): Promise<void> {
  await chooseAll(withValue(control, value));
}

async function chooseAll(values: Values): Promise<void> {
  last = chosen.value;
  chosen.value = values;
  const number = numberOf(values);
  const found = number < 0 ? ran.value.get(keyOf(values)) : await recorded(number, values);
  if (found && chosen.value === values) present(found, pane.value);
  if (!live.value) return;
  endUseless();
  clearTimeout(idle);
  idle = setTimeout(() => void runWanted(true), IDLE);
  await runWanted(false);
}

function present(found: Launched, view: Pane): void {
  const { at } = show.value!.explorable!;
  const next = found.model;
  batch(() => {
    if (model.value !== next) open(next, null);
    shown.value = found;
    pane.value = view;
    warp.value = Math.max(0, warpOf(next, at));
    goTo(resolve(next, at) ?? 0);
  });
}

// ---- launches that the server runs -------------------------------------------------------------

/** The values that were chosen before those that are chosen. */
let last: Values = [];
let idle: ReturnType<typeof setTimeout> | undefined;
/** The runs in progress, two at most: when they began, and what ends them. */
const running = new Map<string, { readonly began: number; readonly given: AbortController }>();
/** The server's process for runs has answered, so that a run takes no longer than its launch. */
let begun = false;

function endUseless(): void {
  for (const [key, { began, given }] of running) {
    if (begun && key !== keyOf(chosen.value) && performance.now() - began > LATE) given.abort();
  }
}

/** Runs the launch that is chosen, if it has not run; with `neighbours`, then those beside it. */
async function runWanted(neighbours: boolean): Promise<void> {
  if (running.size > 0) return runBeside();
  for (let next = wanted(neighbours); next && live.value; next = wanted(neighbours)) {
    const began = chosen.value;
    await runOne(next);
    neighbours &&= chosen.value === began;
  }
}

/** Runs launches that are wanted beside another one that is in progress. */
async function runBeside(): Promise<void> {
  for (let next = wanted(false); next && running.size === 1 && begun && live.value; next = wanted(false)) await runOne(next);
}

function wanted(neighbours: boolean): Values | null {
  const values = [chosen.value, ...onward(), ...(neighbours ? neighboursOf(chosen.value) : [])];
  return values.find(isMissing) ?? null;
}

/** The values to which a drag comes next if it goes on. */
function onward(): Values[] {
  const values = [1, 2].map((steps) =>
    chosen.value.map((value, index) => {
      const before = last[index]?.split(",") ?? [];
      return value.split(",").map((number, part) => (number === before[part] ? number : Number(number) + steps * (Number(number) - Number(before[part])))).join(",");
    }),
  );
  return values.filter((next) => next.every((value, index) => isAllowed(controls()[index]!, value)));
}

function isMissing(values: Values): boolean {
  const key = keyOf(values);
  return numberOf(values) < 0 && !ran.value.has(key) && !refusals.value.has(key) && !running.has(key);
}

/** The values at up to AHEAD steps of a slider from these, the nearest first. */
function neighboursOf(values: Values): Values[] {
  const found: Values[] = [];
  for (let steps = 1; steps <= AHEAD; steps++) {
    for (const [index, control] of controls().entries()) {
      for (const [part, range] of control.ranges.entries()) {
        for (const by of [steps * range.step, -steps * range.step]) {
          const numbers = values[index]!.split(",").map(Number);
          numbers[part]! += by;
          const next = numbers.join(",");
          if (isAllowed(control, next)) found.push(values.map((value, other) => (other === index ? next : value)));
        }
      }
    }
  }
  return found;
}

function isAllowed(control: Control, value: string): boolean {
  if (control.values.includes(value)) return true;
  const numbers = value.split(",").map(Number);
  return live.value && control.ranges.length === numbers.length && control.ranges.every(({ least, most, step }, part) => numbers[part]! >= least && numbers[part]! <= most && (numbers[part]! - least) % step === 0);
}

const busy = () => new Promise((done) => setTimeout(done, 100));

async function runOne(values: Values): Promise<void> {
  const given = new AbortController();
  running.set(keyOf(values), { began: performance.now(), given });
  const late = setTimeout(endUseless, LATE + 1);
  try {
    const found = await explore(show.value!.explorable!.id, values, given.signal);
    begun = found !== null;
    if (found === null) return;
    if (!("kind" in found)) keep({ values, ...found, live: true });
    else if (found.kind === "busy") await busy();
    else refusals.value = new Map([...refusals.value, [keyOf(values), found.message]]);
  } catch {
    await leave();
  } finally {
    clearTimeout(late);
    running.delete(keyOf(values));
  }
}

function keep(found: Launched): void {
  const entries = [...ran.value, [keyOf(found.values), found] as const];
  ran.value = new Map(entries.slice(-MOST));
  if (keyOf(chosen.value) === keyOf(found.values)) present(found, pane.value);
}

/** Goes on without the server: with the recorded values that are nearest to the chosen ones. */
async function leave(): Promise<void> {
  const nearest = (control: Control, value: string) => {
    const wished = value.split(",").map(Number);
    const distance = (one: string) => one.split(",").reduce((sum, part, index) => sum + Math.abs(Number(part) - wished[index]!), 0);
    return control.values.includes(value) ? value : control.values.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  };
  gone.value = true;
  await chooseAll(controls().map((control, index) => nearest(control, chosen.value[index]!)));
}

// ---- at the beginning ----------------------------------------------------------------------------

/** Values as a link has them; null where the controls cannot have them. */
function linked(text: string | null): Values | null {
  const values = text?.split(";") ?? [];
  return values.length === controls().length && controls().every((control, index) => isAllowed(control, values[index]!)) ? values : null;
}

/** The chosen values, as a link has them. */
export const placeOfValues = computed(() => keyOf(chosen.value));

/** Show the values that a link has. */
export async function followValues(text: string | null): Promise<void> {
  const values = linked(text);
  if (values && keyOf(values) !== keyOf(chosen.value)) await chooseAll(values);
}

/** Show an explorable as it begins, or with the values of a link. Then read its other launches, so
 * that they are there at once. */
export async function openExplorable(text: string | null): Promise<void> {
  const told = show.value!.explorable!;
  chosen.value = told.controls.map((control) => control.values[control.start]!);
  present(await recorded(numberOf(chosen.value), chosen.value), told.look as Pane);
  await followValues(text);
  void readOthers();
}

async function readOthers(): Promise<void> {
  const { figures } = show.value!.explorable!;
  for (let number = 0; number < figures.length; number++) {
    if (!read.has(number)) read.set(number, readTrace(number));
    await read.get(number);
  }
  if (live.value) await runWanted(true);
}
