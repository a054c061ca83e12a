// The sign of each status of a warp: its shape, so that colour is not needed.

import type { Status } from "../model.ts";

export const GLYPHS: Record<Status, string> = {
  "waiting to start": "·",
  executing: "▶",
  ready: "○",
  "at a barrier": "‖",
  ended: "✓",
  stopped: "✕",
  "not recorded": "…",
};
