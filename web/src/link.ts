// Links to a state: the position is in the URL, behind `#`. An export may come with one of its own.

import { batch, effect, signal } from "@preact/signals";
import { showCaption } from "./captions.ts";
import { followValues, placeOfValues } from "./explore.ts";
import { showLaunch } from "./launches.tsx";
import { caption, goTo, lesson, model, modelled, pane, register, show, shownLaunch, time, warp, type Pane } from "./state.ts";
import { place as placeInFilm, turnTo } from "./watch.ts";

const PANES: readonly string[] = ["warp", "memory", "data", "machine", "numbers", "time", "code"];

/** What a URL says of the position. */
function positionOf(url: string): URLSearchParams {
  return new URLSearchParams(new URL(url).hash.slice(1) || show.value?.place);
}

/** The launch of the program that a URL says, the first where it says none. */
export function linkedLaunch(url: string = location.href): number {
  const wanted = Number(positionOf(url).get("launch"));
  return show.value?.launches[wanted] ? wanted : 0;
}

/** The values of an explorable's controls that a URL says, if any. */
export function linkedValues(url: string = location.href): string | null {
  return positionOf(url).get("values");
}

/** Go where a URL says. */
export function followLink(url: string = location.href): void {
  const asked = positionOf(url);
  if (!model.value || !asked.has("step")) return;
  batch(() => {
    followCaption(asked.get("caption"));
    const shown = model.value!; // a stop of an explainer may have opened another one
    const wanted = Number(asked.get("warp"));
    if (wanted >= 0 && wanted < shown.trace.warps.length) warp.value = wanted;
    goTo(Number(asked.get("step")) || 0);
    const seen = asked.get("view") ?? "";
    if (PANES.includes(seen) && (seen !== "time" || modelled.value)) pane.value = seen as Pane;
    const name = asked.get("register");
    const index = shown.trace.registers.findIndex((one) => one.name === name);
    if (index >= 0) register.value = index;
  });
}

/** Show the caption of a lesson or an explainer that a link names. */
function followCaption(text: string | null): void {
  const number = Number(text);
  if (text === null || !Number.isInteger(number)) return;
  if (show.value?.explainer) turnTo(number);
  else if (lesson.value && number < lesson.value.captions.length) showCaption(number);
}

/** The position that the page shows, as a URL says it. */
function position(): string {
  const shown = model.value!;
  const now = new URLSearchParams({ step: String(time.value), warp: String(warp.value), view: pane.value });
  if (show.value?.launches.length) now.set("launch", String(shownLaunch.value));
  if (show.value?.explorable) now.set("values", placeOfValues.value);
  if (lesson.value ? caption.value >= 0 : show.value?.explainer) now.set("caption", String(placeInFilm.value));
  if (register.value !== null) now.set("register", shown.trace.registers[register.value]?.name ?? "");
  return `#${now}`;
}

function write(place: string): void {
  try {
    history.replaceState(null, "", place);
  } catch {
    // A frame of another origin than its page, as in a notebook, has no URL of its own.
  }
}

/** Keep the URL where the page is; a browser allows that only now and then. */
export function keepLink(): void {
  let waiting = 0;
  effect(() => {
    if (!model.value) return;
    const place = position();
    clearTimeout(waiting);
    waiting = setTimeout(() => write(place), 250);
  });
  // The event's own URL: a write that was waiting may have replaced the page's before the event comes.
  addEventListener("hashchange", (event) => void follow(event.newURL));
}

/** Show what a URL names, then go where it says. */
async function follow(url: string): Promise<void> {
  await showLaunch(linkedLaunch(url));
  await followValues(linkedValues(url));
  followLink(url);
}

/** Whether the page has a URL that others can open; one in a notebook's frame has none. */
export const hasLink = location.protocol !== "about:";

/** The link has just been copied. */
export const copied = signal(false);

/** Copies the link to what is shown. */
export async function copyLink(): Promise<void> {
  const link = new URL(location.href);
  link.hash = position();
  link.searchParams.delete("embed");
  link.searchParams.delete("pane");
  write(link.hash);
  try {
    await navigator.clipboard.writeText(link.href);
  } catch {
    copyFromField(link.href);
  }
  copied.value = true;
  setTimeout(() => (copied.value = false), 2000);
}

/** The older way, where a page may not write to the clipboard. */
function copyFromField(text: string): void {
  const field = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// ---- in a frame of another page ----------------------------------------------------------------

const asked = new URLSearchParams(location.search);

/** The page is part of another one: without what is around the views. */
export const embedded = asked.get("embed") === "1";

/** The only view that an embedded page shows, if one is named. */
export const onlyPane = embedded && PANES.includes(asked.get("pane") ?? "") ? (asked.get("pane") as Pane) : null;
