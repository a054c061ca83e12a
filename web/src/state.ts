// What the page shows now: one position in time, one warp, and everything that follows from them.

import { batch, computed, signal } from "@preact/signals";
import { upper, type Model } from "./model.ts";
import { Modelled } from "./modelled.ts";
import { kept } from "./settings.ts";
import type { LaunchRequest, Lesson, Refusal, Show } from "./schema.ts";
import { speak } from "./words.ts";

export type Pane = "warp" | "memory" | "data" | "machine" | "numbers" | "time" | "code";

export const show = signal<Show | null>(null);
export const model = signal<Model | null>(null);
/** The run beside the first one, where two are compared. */
export const other = signal<Model | null>(null);
export const labels = signal<readonly string[]>([]);
export const lesson = signal<Lesson | null>(null);
/** Which caption of the lesson is shown; -1 is the question before the first. */
export const caption = signal(-1);
export const predicted = signal<number | null>(null);

/** The step that is shown; the number of steps for the end. */
export const time = signal(0);
export const warp = signal(0);
/** The register whose values the lanes show; null follows the instruction. */
export const register = signal<number | null>(null);
export const pane = signal<Pane>("memory");
export const playing = signal(false);
/** Steps a second. */
export const speed = signal(4);

export const request = signal<LaunchRequest | null>(null);
export const editing = signal(false);
/** The text of the design that a task asks for, while it is edited in the place of the source. */
export const policy = signal<string | null>(null);
/** Whether kernels run: on a server, or in the page. */
export const runs = computed(() => (show.value?.live || !!show.value?.machine) && request.value !== null);
/** A server can compile the source; what another compiler made of it would stay as it is. */
export const editable = computed(() => runs.value && !request.value?.ptx && policy.value === null);
/** Whether the PTX is edited, in the place of its listing. */
export const editingPtx = signal(false);
export const launchOpen = signal(false);
export const lessonsOpen = signal(false);
export const helpOpen = signal(false);
export const ptxOpen = kept<boolean>("ptx", false);
export const wrapped = kept<boolean>("wrap", true);
export const projector = kept<boolean>("projector", false);
/** How much of the width the code has, in percent; 0 as the layout has it. */
export const split = kept<number>("split", 0);
export const running = signal(false);
export const refusal = signal<Refusal | null>(null);

/** Which launch of a program is shown, where the page can choose. */
export const shownLaunch = signal(0);

export const moment = computed(() => model.value?.moment(warp.value, time.value) ?? null);

/** How many steps the other run's warp is ahead of the first one's: each caption and each event sets
 * it, so that both show the same event. */
const ahead = signal(0);

/** The step of the other run that is shown. */
export const otherTime = computed(() => {
  const [mine, its] = [model.value, other.value];
  if (!mine || !its) return 0;
  if (time.value >= mine.count) return its.count;
  const steps = its.stepsOf(otherWarp.value);
  const nth = Math.max(0, mine.stepsUntil(warp.value, time.value) - 1 + ahead.value);
  return nth < steps.length ? steps[nth]! : its.count;
});

/** Show a step of the other run beside the step that is shown now. */
export function align(step: number): void {
  const [mine, its] = [model.value, other.value];
  if (!mine || !its) return;
  aligned.value = { warp: warp.value, its: its.warp[step] ?? warp.value };
  ahead.value = its.stepsUntil(otherWarp.value, step) - mine.stepsUntil(warp.value, time.value);
}

/** The warp of the other run whose step was aligned with one of a warp of the first. */
const aligned = signal({ warp: 0, its: 0 });

export const otherWarp = computed(() => {
  const its = other.value;
  const wanted = aligned.value.warp === warp.value ? aligned.value.its : warp.value;
  return its ? Math.min(wanted, its.trace.warps.length - 1) : 0;
});

/** Show a step; it is brought inside of what there is. */
export function goTo(step: number): void {
  const shown = model.value;
  if (shown) time.value = Math.max(0, Math.min(step, shown.count));
}

/** Step by the chosen warp, from where it is. */
export function stepBy(steps: number): void {
  const shown = model.value;
  if (!shown) return;
  const row = shown.stepsOf(warp.value);
  const nth = shown.stepsUntil(warp.value, time.value) - 1;
  if (time.value >= shown.count && steps < 0) return goTo(row[row.length + steps] ?? 0);
  // From between two of its steps, back leads to the earlier one first.
  const here = nth >= 0 && row[nth] !== time.value && steps < 0 ? nth + 1 : nth;
  const wanted = outOfSpin(shown, row, here + steps, steps);
  goTo(wanted >= row.length ? shown.count : wanted < 0 ? (row[0] ?? 0) : row[wanted]!);
}

/** The number of a warp's step or, where views leave that out, of the next one in the direction of
 * `steps` that they show. */
function outOfSpin(shown: Model, row: Uint32Array, nth: number, steps: number): number {
  const spin = nth >= 0 && nth < row.length ? shown.spins.at(row[nth]!) : null;
  if (!spin) return nth;
  return steps > 0 ? upper(row, spin.stop - 1) : upper(row, spin.first - 1) - 1;
}

/** Step by the launch: whichever warp is next, which becomes the chosen one. */
export function stepAny(steps: number): void {
  const shown = model.value;
  if (!shown) return;
  batch(() => {
    goTo(time.value + steps);
    if (time.value < shown.count) warp.value = shown.warp[time.value]!;
  });
}

/** Go to the next event, or the one before, of the chosen warp; the other run goes to its own. */
export function toEvent(back: boolean): void {
  const [shown, its] = [model.value, other.value];
  if (!shown) return;
  const own = its?.nextEvent(otherTime.value, otherWarp.value, back);
  const found = shown.nextEvent(time.value, warp.value, back);
  batch(() => {
    goTo(found ?? (back ? (shown.stepsOf(warp.value)[0] ?? 0) : shown.count));
    if (own != null && time.value < shown.count) align(own);
  });
}

/** Choose a warp; where it has not begun yet, go to its first step. */
export function choose(number: number): void {
  const shown = model.value;
  if (!shown) return;
  batch(() => {
    warp.value = (number + shown.trace.warps.length) % shown.trace.warps.length;
    if (shown.stepsUntil(warp.value, time.value) === 0) goTo(shown.stepsOf(warp.value)[0] ?? 0);
  });
}

/** Show another run from its start. */
export function open(first: Model, second: Model | null): void {
  speak(first.trace.launch.terms);
  batch(() => {
    model.value = first;
    other.value = second;
    warp.value = 0;
    register.value = null;
    playing.value = false;
    zoom.value = null;
    cycles.value = null;
    picked.value = null;
    if (pane.value === "time" && !first.trace.modelled) pane.value = "memory";
    ahead.value = 0;
    chosenArray.value = null;
    finding.value = -1;
    time.value = first.stepsOf(0)[0] ?? 0;
  });
}

/** Show where a run ended, if that was an error: the last step, and what it accessed. */
export function showEnd(): void {
  const shown = model.value;
  if (!shown?.trace.error || shown.count === 0) return;
  batch(() => {
    warp.value = shown.warp[shown.count - 1]!;
    goTo(shown.count - 1);
    if (shown.trace.fault) pane.value = "data";
  });
}

/** Show what is wrong with a run: the first finding, else where an error ended it. */
export function showWrong(): void {
  if (model.value?.trace.findings?.length) openFinding(0);
  else showEnd();
}

/** The finding of the sanitizer that is shown, by its number; -1 for none. */
export const finding = signal(-1);
export const shownFinding = computed(() => model.value?.trace.findings?.[finding.value] ?? null);

/** Go to an access of a finding: 0 is the later one, 1 the earlier one. */
export function openFinding(number: number, party = 0): void {
  const found = model.value?.trace.findings?.[number];
  if (!found) return;
  batch(() => {
    finding.value = number;
    const who = found.parties[party];
    if (!who || who.step < 0) return;
    warp.value = model.value!.warp[who.step]!;
    goTo(who.step);
    pane.value = "data";
    chosenArray.value = null;
  });
}

/** The array that the data view shows; null follows the accesses. */
export const chosenArray = signal<string | null>(null);

/** The steps that the timeline shows, all of them where null. */
export const zoom = signal<readonly [number, number] | null>(null);

/** Go to a step, and to the warp of a row of the timeline where one was meant. */
export function batchGo(step: number, row: number | undefined): void {
  const shown = model.value;
  if (!shown) return;
  batch(() => {
    goTo(step);
    if (row !== undefined) warp.value = row;
    else if (step < shown.count) warp.value = shown.warp[step]!;
  });
}

// ---- modelled time ---------------------------------------------------------------------------

/** What was modelled of the run; null where nothing was. */
export const modelled = computed(() => {
  const shown = model.value;
  return shown?.trace.modelled ? new Modelled(shown, shown.trace.modelled) : null;
});

/** The cycles in sight, all of them where null. */
export const cycles = signal<readonly [number, number] | null>(null);

/** The span of modelled time that was chosen, and the step and the warp that were shown then. */
const picked = signal<{ readonly span: number; readonly time: number; readonly warp: number } | null>(null);

/** The span that is shown: the one that was chosen, until a step or a warp is, and then its own. */
export const chosenSpan = computed(() => {
  const [made, one, now] = [modelled.value, picked.value, moment.value];
  if (one && one.time === time.value && one.warp === warp.value) return one.span;
  return made && now ? made.spanOf(warp.value, now.step) : null;
});

/** Choose a span, and go to its warp and its step, where they were recorded. */
export function pickSpan(span: number): void {
  const made = modelled.value;
  if (!made) return;
  batch(() => {
    const [row, step] = [made.recorded(span), made.stepOf(span)];
    if (row !== null) warp.value = row;
    if (step !== null) goTo(step);
    picked.value = { span, time: time.value, warp: warp.value };
  });
}
