// Explorables: which values the controls have, and the launch that was recorded for them.

import { batch, computed, signal } from "@preact/signals";
import { resolve, warpOf } from "./anchors.ts";
import { readTrace } from "./load.ts";
import type { Model } from "./model.ts";
import { goTo, model, open, pane, show, warp, type Pane } from "./state.ts";

/** The number of the chosen value of each control. */
export const chosen = signal<readonly number[]>([]);

/** The number of the launch with the chosen values: the last control's values are the fastest. */
export const shownRun = computed(() => runOf(chosen.value));

export function runOf(values: readonly number[]): number {
  const controls = show.value?.explorable?.controls ?? [];
  return controls.reduce((number, control, index) => number * control.values.length + (values[index] ?? 0), 0);
}

const read = new Map<number, Promise<Model>>();

function trace(number: number): Promise<Model> {
  const found = read.get(number) ?? readTrace(number);
  read.set(number, found);
  return found;
}

/** Choose a value of a control, and show its launch at the step that the page is about. The view
 * that the reader has chosen stays. */
export async function choose(control: number, value: number): Promise<void> {
  const values = chosen.value.map((now, index) => (index === control ? value : now));
  const number = runOf(values);
  chosen.value = values;
  const next = await trace(number);
  if (shownRun.value === number) present(next, pane.value);
}

function present(next: Model, view: Pane): void {
  const { at } = show.value!.explorable!;
  batch(() => {
    if (model.value !== next) open(next, null);
    pane.value = view;
    warp.value = Math.max(0, warpOf(next, at));
    goTo(resolve(next, at) ?? 0);
  });
}

/** Show an explorable as it begins, then read its other launches, so that they are there at once. */
export async function openExplorable(): Promise<void> {
  const told = show.value!.explorable!;
  chosen.value = told.controls.map((control) => control.start);
  present(await trace(shownRun.value), told.look as Pane);
  for (let number = 0; number < told.figures.length; number++) await trace(number);
}
