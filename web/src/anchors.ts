// Where in a trace a text stands: the step that an anchor means.

import type { Model } from "./model.ts";
import type { Anchor } from "./schema.ts";

/** The step that an anchor means; null where there is none. */
export function resolve(model: Model, anchor: Anchor): number | null {
  const warp = warpOf(model, anchor);
  if (warp < 0) return null;
  const found: number[] = [];
  for (const step of model.stepsOf(warp)) if (fits(model, step, anchor)) found.push(step);
  return found[anchor.nth > 0 ? anchor.nth - 1 : found.length + anchor.nth] ?? null;
}

export function warpOf(model: Model, anchor: Anchor): number {
  return model.trace.warps.findIndex((one) => one.block === anchor.block && one.warp === anchor.warp);
}

function fits(model: Model, step: number, anchor: Anchor): boolean {
  if (anchor.event && !model.eventsAt(step).some((kind) => kind === anchor.event)) return false;
  const code = model.code(step);
  if (anchor.ptx && !code.text.replace(/^@!?%\w+ /, "").startsWith(anchor.ptx)) return false;
  if (!anchor.line) return true;
  const text = model.trace.sources[code.file]?.text.split("\n")[code.line - 1] ?? "";
  return text.includes(anchor.line);
}
