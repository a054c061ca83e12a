// The keyboard: everything can be done with it.

import { runNow } from "./launch.tsx";
import { checkTask } from "./lesson.tsx";
import { choose, editable, editing, editingPtx, goTo, helpOpen, launchOpen, lesson, lessonsOpen, model, modelled, pane, policy, ptxOpen, runs, show, stepAny, stepBy, toEvent, warp, type Pane } from "./state.ts";
import { canSpeak, film, place as placeInFilm, skipQuestion, spoken, togglePlaying, toggleWatching, turnTo, waiting } from "./watch.ts";

export const KEYS: readonly (readonly [string, string])[] = [
  ["Space", "play or pause"],
  ["← →", "the previous or next step of this warp"],
  ["Shift ← →", "the previous or next event of this warp"],
  [", .", "the previous or next step of the launch, in any warp"],
  ["↑ ↓", "the previous or next warp"],
  ["Home End", "the first step of this warp or the end of the launch"],
  ["1 – 7", "the memory, data, machine, numbers, time, warp or code view"],
  ["N P", "the lesson's next or previous caption"],
  ["W", "play or pause the lesson as a video, or continue without an answer"],
  ["V", "read the captions aloud"],
  ["E", "edit the kernel; Esc leaves the editor"],
  ["Ctrl ⏎", "run the edited kernel"],
  ["R", "change the launch: arguments, device, schedule"],
  ["L", "the list of lessons"],
  ["X", "show or hide the PTX"],
  ["?", "this list"],
];

const PANES: readonly Pane[] = ["memory", "data", "machine", "numbers", "time", "warp", "code"];

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (policy.value !== null && lesson.value) void checkTask(lesson.value);
      else if (runs.value) void runNow();
      return;
    }
    if (event.key === "Escape") return leave();
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select, [contenteditable=true]") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && target.closest("button, summary")) return;
    const action = actionOf(event.key, event.shiftKey);
    if (action) {
      event.preventDefault();
      action();
    }
  });
}

function leave(): void {
  (document.activeElement as HTMLElement | null)?.blur();
  for (const one of [editing, editingPtx, launchOpen, lessonsOpen, helpOpen]) one.value = false;
}

function actionOf(key: string, shift: boolean): (() => void) | null {
  const shown = model.value;
  if (!shown) return null;
  const place = "1234567".indexOf(key);
  if (PANES[place] === "time" && !modelled.value) return null;
  if (place >= 0) return () => (pane.value = PANES[place]!);
  switch (key) {
    case " ":
      return togglePlaying;
    case "ArrowRight":
      return () => (shift ? toEvent(false) : stepBy(1));
    case "ArrowLeft":
      return () => (shift ? toEvent(true) : stepBy(-1));
    case "ArrowDown":
      return () => choose(warp.value + 1);
    case "ArrowUp":
      return () => choose(warp.value - 1);
    case ".":
      return () => stepAny(1);
    case ",":
      return () => stepAny(-1);
    case "Home":
      return () => goTo(shown.stepsOf(warp.value)[0] ?? 0);
    case "End":
      return () => goTo(shown.count);
    case "?":
      return () => (helpOpen.value = !helpOpen.value);
  }
  return letter(key.toLowerCase());
}

function letter(key: string): (() => void) | null {
  const live = show.value?.live ?? false;
  const told = lesson.value ?? show.value?.explainer;
  if (key === "n" && told) return () => turnTo(placeInFilm.value + 1);
  if (key === "p" && told) return () => turnTo(placeInFilm.value - 1);
  if (key === "w" && film.value) return waiting.value ? skipQuestion : toggleWatching;
  if (key === "v" && film.value && canSpeak) return () => (spoken.value = !spoken.value);
  if (key === "r" && runs.value) return () => (launchOpen.value = !launchOpen.value);
  if (key === "x") return () => (ptxOpen.value = !ptxOpen.value);
  if (key === "l" && live) return () => (lessonsOpen.value = !lessonsOpen.value);
  if (key === "e" && editable.value) return startEditing;
  return null;
}

export function startEditing(): void {
  editing.value = true;
  if (matchMedia("(max-width: 900px)").matches) pane.value = "code"; // where a tab has it
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".source .cm-content")?.focus());
}
