// Deep links: the position is in the URL, behind `#`.

import { batch, effect } from "@preact/signals";
import { showLaunch } from "./launches.tsx";
import { goTo, model, modelled, pane, register, show, shownLaunch, time, warp, type Pane } from "./state.ts";

const PANES: readonly string[] = ["warp", "memory", "data", "machine", "numbers", "time", "code"];

/** The launch of the program that a URL says, the first where it says none. */
export function linkedLaunch(url: string = location.href): number {
  const wanted = Number(new URLSearchParams(new URL(url).hash.slice(1)).get("launch"));
  return show.value?.launches[wanted] ? wanted : 0;
}

/** Go where a URL says. */
export function followLink(url: string = location.href): void {
  const shown = model.value;
  const asked = new URLSearchParams(new URL(url).hash.slice(1));
  if (!shown || !asked.has("step")) return;
  batch(() => {
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
    const shown = model.value;
    if (!shown) return;
    const place = new URLSearchParams({ step: String(time.value), warp: String(warp.value), view: pane.value });
    if (show.value?.launches.length) place.set("launch", String(shownLaunch.value));
    if (register.value !== null) place.set("register", shown.trace.registers[register.value]?.name ?? "");
    clearTimeout(waiting);
    waiting = setTimeout(() => write(`#${place}`), 250);
  });
  // The event's own URL: a write that was waiting may have replaced the page's before the event comes.
  addEventListener("hashchange", (event) => void showLaunch(linkedLaunch(event.newURL)).then(() => followLink(event.newURL)));
}
