// Compare-and-swaps that found another value than the one they compare with: they write nothing.

import { lanesOf } from "./bits.ts";
import type { Model } from "./model.ts";

/** Bits, destination and value to compare with, of `atom...cas.b32 d, [a], b, c`. */
const SWAP = /^(?:@\S+\s+)?atom\S*\.cas\S*\.b(16|32|64)\s+([^\s,]+),\s*\[[^\]]*\],\s*([^\s,]+),/;

/** Of these lanes, those whose atomic at a step wrote nothing; none where registers are not recorded. */
export function failedSwaps(model: Model, step: number, lanes: number): number {
  const code = model.code(step);
  const [, bits, destination, compared] = SWAP.exec(code.text) ?? [];
  if (!bits || !destination || !compared) return 0;
  const warp = model.warp[step]!;
  const named = (name: string, among: readonly number[]) => among.find((one) => model.trace.registers[one]!.name === name);
  const result = named(destination, code.writes);
  const found = result === undefined ? null : model.register(warp, result, step, true);
  const expected = valuesOf(model, warp, step, compared, named(compared, code.reads));
  if (!found || !expected) return 0;
  const same = (a: number | bigint, b: number | bigint) => BigInt.asUintN(Number(bits), BigInt(a)) === BigInt.asUintN(Number(bits), BigInt(b));
  let failed = 0;
  for (const lane of lanesOf(lanes)) if (!same(found[lane]!, expected[lane]!)) failed |= 1 << lane;
  return failed >>> 0;
}

/** What an operand holds in each lane before a step: a register or an integer. */
function valuesOf(model: Model, warp: number, step: number, text: string, register: number | undefined): (number | bigint)[] | null {
  if (register !== undefined) return model.register(warp, register, step);
  return /^-?\d+$/.test(text) ? Array<bigint>(32).fill(BigInt(text)) : null;
}
