// How each state of a warp looks: as high as the warp is far from waiting, its colour by what it
// waits for, its pattern where several wait for the same.

export type Pattern = "hatched" | "upright" | "level";

export interface StateLook {
  /** A variable of the style. */
  readonly colour: string;
  /** Plain if there is none. */
  readonly pattern?: Pattern;
  /** How much of its row it fills. */
  readonly tall: number;
  readonly faint?: boolean;
}

const WAITS = 0.55;

export const LOOKS: Readonly<Record<string, StateLook>> = {
  selected: { colour: "--active", tall: 1 },
  not_selected: { colour: "--active", tall: 0.8, faint: true },
  wait: { colour: "--arithmetic", tall: WAITS },
  math_pipe_throttle: { colour: "--arithmetic", tall: WAITS, pattern: "hatched" },
  dispatch_stall: { colour: "--arithmetic", tall: WAITS, pattern: "upright" },
  long_scoreboard: { colour: "--memory", tall: WAITS },
  membar: { colour: "--memory", tall: WAITS, pattern: "hatched" },
  drain: { colour: "--memory", tall: WAITS, pattern: "upright" },
  lg_throttle: { colour: "--memory", tall: WAITS, pattern: "level" },
  short_scoreboard: { colour: "--shared", tall: WAITS },
  mio_throttle: { colour: "--shared", tall: WAITS, pattern: "hatched" },
  tex_throttle: { colour: "--shared", tall: WAITS, pattern: "upright" },
  barrier: { colour: "--wait", tall: WAITS },
  sleeping: { colour: "--wait", tall: WAITS, pattern: "hatched" },
  branch_resolving: { colour: "--control", tall: WAITS },
  no_instruction: { colour: "--control", tall: WAITS, pattern: "hatched" },
};

export const FAINT = 0.42;

/** What fills each state, by its number, for this pen and the style as it is now. */
export function fillsOf(pen: CanvasRenderingContext2D, states: readonly string[]): { fill: string | CanvasPattern; look: StateLook }[] {
  const style = getComputedStyle(document.documentElement);
  return states.map((name) => {
    const look = LOOKS[name]!;
    const colour = style.getPropertyValue(look.colour).trim();
    return { look, fill: look.pattern ? patterned(pen, colour, look.pattern) : colour };
  });
}

function patterned(pen: CanvasRenderingContext2D, colour: string, pattern: Pattern): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = 4;
  tile.height = pattern === "level" ? 3 : 4;
  const own = tile.getContext("2d")!;
  own.fillStyle = colour;
  own.globalAlpha = 0.35;
  own.fillRect(0, 0, tile.width, tile.height);
  own.globalAlpha = 1;
  if (pattern === "hatched") for (let i = 0; i < 4; i++) own.fillRect(i, 3 - i, 1.4, 1);
  else if (pattern === "upright") own.fillRect(0, 0, 1.5, 4);
  else own.fillRect(0, 0, 4, 1);
  return pen.createPattern(tile, "repeat")!;
}
