// Stretches of a launch in which one warp executes a loop again and again and nothing changes: it
// waits for a value in memory. Views show their first and last iterations alone.

import { upper, type Model } from "./model.ts";

/** A stretch that views leave out: steps `first` up to but not including `stop`, all of one warp. */
export interface Spin {
  readonly first: number;
  readonly stop: number;
  readonly iterations: number;
}

/** Shorter stretches are shown whole. */
const LEAST_ITERATIONS = 8;

export class Spins {
  readonly all: readonly Spin[];
  /** By stretch, how many steps it and those before it leave out. */
  readonly #until: Uint32Array;
  readonly #firsts: Uint32Array;

  constructor(model: Model) {
    this.all = findSpins(model);
    this.#firsts = Uint32Array.from(this.all, (one) => one.first);
    let sum = 0;
    this.#until = Uint32Array.from(this.all, (one) => (sum += one.stop - one.first));
  }

  /** The stretch that a step is in; null where it is in none. */
  at(step: number): Spin | null {
    const spin = this.all[upper(this.#firsts, step) - 1];
    return spin && step < spin.stop ? spin : null;
  }

  /** Where a step lies among those that are shown; one that is left out lies at its stretch. */
  position(step: number): number {
    const index = upper(this.#firsts, step) - 1;
    if (index < 0) return step;
    const spin = this.all[index]!;
    const before = index > 0 ? this.#until[index - 1]! : 0;
    return step < spin.stop ? spin.first - before : step - this.#until[index]!;
  }

  /** The step that lies at a position. */
  stepAt(position: number): number {
    let index = 0;
    while (index < this.all.length && this.all[index]!.first - (index > 0 ? this.#until[index - 1]! : 0) <= position) index++;
    return position + (index > 0 ? this.#until[index - 1]! : 0);
  }
}

function findSpins(model: Model): Spin[] {
  const found: Spin[] = [];
  let last = new Map<number, number>();
  let since = 0; // the first step of the iterations that are all alike
  let period = 0;
  const end = (stop: number) => {
    const iterations = period ? Math.floor((stop - since) / period) : 0;
    if (iterations >= LEAST_ITERATIONS) {
      const [first, left] = [since + 2 * period, since + (iterations - 1) * period];
      found.push({ first, stop: left, iterations: iterations - 3 });
    }
    period = 0;
  };
  for (let step = 0; step < model.count; step++) {
    if (step === 0 || model.warp[step] !== model.warp[step - 1]) {
      end(step);
      last = new Map();
    }
    if (period && !model.isRepeated(step, step - period)) end(step);
    const code = model.code(step);
    if (!period && code.is_branch) {
      const before = last.get(model.instruction[step]!);
      const length = before === undefined ? 0 : step - before;
      if (length > 1 && isIteration(model, step, length)) [period, since] = [length, step + 1 - 2 * length];
    }
    if (code.is_branch) last.set(model.instruction[step]!, step);
  }
  end(model.count);
  return found;
}

/** Whether the steps up to `step` repeat those `length` before. */
function isIteration(model: Model, step: number, length: number): boolean {
  for (let i = 0; i < length; i++) {
    const earlier = step - i - length;
    if (earlier < 0 || model.warp[earlier] !== model.warp[step] || !model.isRepeated(step - i, earlier)) return false;
  }
  return true;
}
