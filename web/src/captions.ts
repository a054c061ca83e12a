// Which caption of the lesson is shown, and the step that it is about.

import { batch, computed, signal } from "@preact/signals";
import { resolve, warpOf } from "./anchors.ts";
import { noteRead } from "./load.ts";
import type { Lesson } from "./schema.ts";
import { align, caption, choose, chosenArray, goTo, lesson, model, other, pane, playing, show, type Pane } from "./state.ts";

/** The task is worked on: the kernel in the editor is the learner's. */
export const working = signal(false);
/** "read" or "done" for each lesson that the user has been through. */
export const progress = signal<Readonly<Record<string, string>>>({});

/** The captions are behind; the recap and the task are shown. */
export const finished = computed(() => lesson.value !== null && caption.value >= lesson.value.captions.length);

/** The width up to which the style shows one view at a time. */
const small = matchMedia("(max-width: 900px)");

/** Show caption number `number`: -1 is the question, the number of captions the recap. */
export function showCaption(number: number): void {
  const [taught, shown] = [lesson.value, model.value];
  if (!taught || !shown || working.value) return;
  batch(() => {
    playing.value = false;
    caption.value = Math.max(-1, Math.min(number, taught.captions.length));
    if (finished.value) return end(taught);
    const said = taught.captions[caption.value];
    const step = said ? resolve(shown, said.at) : null;
    if (!said || step === null) return;
    choose(warpOf(shown, said.at));
    goTo(step);
    chosenArray.value = said.array || null;
    bring(said.part);
    const beside = other.value ? resolve(other.value, said.beside ?? said.at) : null;
    if (beside !== null) align(beside);
    // One view at a time is in sight on a small screen: a caption without its own is about the warp.
    const look = said.look || (small.matches && !other.value ? "warp" : "");
    if (look) pane.value = look as Pane;
  });
}

/** Brings a part of the views into sight, their beginning where none is named. */
function bring(part: string): void {
  requestAnimationFrame(() => {
    for (const view of document.querySelectorAll(".single, .compare")) view.scrollTop = 0;
    for (const found of document.querySelectorAll(`[data-part="${part}"]`)) found.scrollIntoView({ block: "nearest" });
  });
}

/** The captions of a lesson have been read. */
function end(taught: Lesson): void {
  if (progress.value[taught.id]) return;
  progress.value = { ...progress.value, [taught.id]: "read" };
  if (show.value?.live) void noteRead(taught.id);
}
