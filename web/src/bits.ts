// Masks of lanes: 32 bits, bit l for lane l.

export const LANES = 32;
export const ALL_LANES = 0xffffffff;

export function count(mask: number): number {
  let left = mask - ((mask >>> 1) & 0x55555555);
  left = (left & 0x33333333) + ((left >>> 2) & 0x33333333);
  return (((left + (left >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

export function has(mask: number, lane: number): boolean {
  return ((mask >>> lane) & 1) === 1;
}

export function lanesOf(mask: number): number[] {
  const found: number[] = [];
  for (let lane = 0; lane < LANES; lane++) if (has(mask, lane)) found.push(lane);
  return found;
}

/** Lanes in words: "lanes 0–7, 12". */
export function named(mask: number): string {
  const lanes = lanesOf(mask);
  if (lanes.length === 0) return "no lane";
  if (lanes.length === LANES) return "all 32 lanes";
  const runs: string[] = [];
  for (let at = 0; at < lanes.length; ) {
    let end = at;
    while (end + 1 < lanes.length && lanes[end + 1] === lanes[end]! + 1) end++;
    runs.push(end > at ? `${lanes[at]}–${lanes[end]}` : `${lanes[at]}`);
    at = end + 1;
  }
  const shown = runs.length > 8 ? [...runs.slice(0, 7), `… (${lanes.length} lanes)`] : runs;
  return `${lanes.length === 1 ? "lane" : "lanes"} ${shown.join(", ")}`;
}

/** A mask as eight hexadecimal digits. */
export function hex(mask: number): string {
  return "0x" + (mask >>> 0).toString(16).padStart(8, "0");
}
