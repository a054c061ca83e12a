// How each state of a warp looks: as high as the warp is far from waiting, its colour by what it
// waits for, hatched where two share one.

export interface StateLook {
  /** A variable of the style. */
  readonly colour: string;
  readonly hatched?: boolean;
  /** How much of its row it fills. */
  readonly tall: number;
  readonly faint?: boolean;
}

const WAITS = 0.55;

export const LOOKS: Readonly<Record<string, StateLook>> = {
  selected: { colour: "--accent", tall: 1 },
  not_selected: { colour: "--accent", tall: 0.8, faint: true },
  wait: { colour: "--control", tall: WAITS },
  dispatch_stall: { colour: "--control", tall: WAITS, hatched: true },
  short_scoreboard: { colour: "--hue-0", tall: WAITS },
  drain: { colour: "--hue-0", tall: WAITS, hatched: true },
  long_scoreboard: { colour: "--memory", tall: WAITS },
  membar: { colour: "--memory", tall: WAITS, hatched: true },
  barrier: { colour: "--wait", tall: WAITS },
  sleeping: { colour: "--wait", tall: WAITS, hatched: true },
  branch_resolving: { colour: "--hue-2", tall: WAITS },
  no_instruction: { colour: "--hue-2", tall: WAITS, hatched: true },
  math_pipe_throttle: { colour: "--hue-4", tall: WAITS },
  mio_throttle: { colour: "--hue-3", tall: WAITS },
  tex_throttle: { colour: "--hue-3", tall: WAITS, hatched: true },
  lg_throttle: { colour: "--bad", tall: WAITS },
};

export const FAINT = 0.42;

/** What fills each state, by its number, for this pen and the style as it is now. */
export function fillsOf(pen: CanvasRenderingContext2D, states: readonly string[]): { fill: string | CanvasPattern; look: StateLook }[] {
  const style = getComputedStyle(document.documentElement);
  return states.map((name) => {
    const look = LOOKS[name]!;
    const colour = style.getPropertyValue(look.colour).trim();
    return { look, fill: look.hatched ? hatching(pen, colour) : colour };
  });
}

function hatching(pen: CanvasRenderingContext2D, colour: string): CanvasPattern {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 4;
  const own = tile.getContext("2d")!;
  own.fillStyle = colour;
  own.globalAlpha = 0.35;
  own.fillRect(0, 0, 4, 4);
  own.globalAlpha = 1;
  for (let i = 0; i < 4; i++) own.fillRect(i, 3 - i, 1.4, 1);
  return pen.createPattern(tile, "repeat")!;
}
