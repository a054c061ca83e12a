// The marks of a lane's state: each has a shape of its own beside its colour.

import { count, has, LANES, named } from "../bits.ts";
import type { HelpKey } from "../help.ts";
import type { LanesOff, State } from "../schema.ts";

export type LaneState = keyof LanesOff | "active" | "unguarded" | "goes_on" | "jumps" | "ready";

/** In the order of the legend. */
export const LANE_STATES: readonly LaneState[] = [
  "active",
  "unguarded",
  "goes_on",
  "jumps",
  "other_path",
  "gathering",
  "syncing",
  "at_barrier",
  "ready",
  "exited",
  "absent",
];

export const LANE_NAMES: Record<LaneState, string> = {
  active: "active",
  unguarded: "predicated off",
  goes_on: "falls through",
  jumps: "jumps",
  other_path: "on the other path",
  gathering: "at the reconvergence point",
  syncing: "syncing",
  at_barrier: "at barrier",
  ready: "waiting",
  exited: "exited",
  absent: "not launched",
};

/** What a lane does; `issuing` says whether its warp executes now, `branching` whether that is an
 * instruction that sends lanes elsewhere. */
export function laneState(state: State, executing: number, lane: number, issuing: boolean, branching: boolean): LaneState {
  for (const reason of Object.keys(state.off) as (keyof LanesOff)[]) {
    if (has(state.off[reason], lane)) return reason;
  }
  if (!has(state.active, lane) || !issuing) return "ready";
  if (branching) return has(executing, lane) ? "jumps" : "goes_on";
  return has(executing, lane) ? "active" : "unguarded";
}

export function helpOf(state: LaneState): HelpKey {
  return state;
}

/** The mark itself, drawn in a square of 16 units. */
export function Mark({ state }: { state: LaneState }) {
  switch (state) {
    case "active":
      return <rect class="m-active" x="1" y="1" width="14" height="14" rx="2.5" />;
    case "goes_on":
      return <path class="m-goes-on" d="M1.5 1.5h13v8.5L8 14.8 1.5 10z" />;
    case "jumps":
      return <path class="m-jumps" d="M1.5 5h6V1l7.5 7-7.5 7v-4h-6z" />;
    case "unguarded":
      return <rect class="m-unguarded" x="2" y="2" width="12" height="12" rx="2" />;
    case "other_path":
      return <path class="m-other" d="M2 14 14 2M2 8 8 2M8 14 14 8" />;
    case "gathering":
      return <path class="m-wait" d="M3 2.5h10L8 8.2 3 2.5Zm5 5.7 5 5.3H3l5-5.3Z" />;
    case "syncing":
      return <path class="m-wait-line" d="M3 3v10M13 3v10M3 8h10" />;
    case "at_barrier":
      return <path class="m-wait" d="M4 2h2.6v12H4zM9.4 2H12v12H9.4z" />;
    case "ready":
      return <circle class="m-ready" cx="8" cy="8" r="4.6" />;
    case "exited":
      return <path class="m-exited" d="m4.5 4.5 7 7m0-7-7 7" />;
    case "absent":
      return <circle class="m-absent" cx="8" cy="8" r="1.2" />;
  }
}

/** A mask as 32 ticks. */
export function Strip({ mask, kind = "active" }: { mask: number; kind?: string }) {
  const ticks = Array.from({ length: LANES }, (_, lane) => {
    const x = lane * 4 + (lane >> 3) * 2 + (lane >> 4) * 2;
    return <rect key={lane} x={x} y={has(mask, lane) ? 0 : 4} width="3" height={has(mask, lane) ? 10 : 2} class={has(mask, lane) ? `s-on s-${kind}` : "s-off"} />;
  });
  return (
    <svg class="strip" viewBox="0 0 136 10" role="img" aria-label={`${count(mask)} lanes: ${named(mask)}`}>
      {ticks}
    </svg>
  );
}
