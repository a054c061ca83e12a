// What the warps of an SM did cycle by cycle, as it was modelled: times in which a warp was in one
// state (spans), slot by slot, and which step of the trace each belongs to.

import { LANES } from "./bits.ts";
import { u32, u64, upper, type Model } from "./model.ts";
import type { ModelledTime } from "./schema.ts";

/** A copy in flight: the number of its warp in the launch, the instruction, and its cycles. */
export interface CopySpan {
  readonly warp: number;
  readonly instruction: number;
  readonly since: number;
  readonly until: number;
}

export class Modelled {
  readonly facts: ModelledTime;
  readonly count: number;
  readonly slot: Uint32Array;
  readonly warp: Uint32Array;
  readonly state: Uint8Array;
  readonly since: Float64Array;
  readonly until: Float64Array;
  readonly instruction: Uint32Array;
  readonly visit: Uint32Array;
  /** In the order in which they began. */
  readonly copies: readonly CopySpan[];
  /** The slots that had a warp, and the spans of each: its first, and the one behind its last. */
  readonly slots: readonly number[];
  readonly rows: readonly (readonly [number, number])[];
  /** The first modelled cycle, and the one behind the last. */
  readonly range: readonly [number, number];
  readonly #model: Model;
  readonly #ofWarp = new Map<number, [number, number]>();
  readonly #warpsOfBlock: number;

  constructor(model: Model, facts: ModelledTime) {
    this.#model = model;
    this.facts = facts;
    this.count = facts.count;
    this.slot = u32(facts.slot);
    this.warp = u32(facts.warp);
    this.state = facts.state;
    this.since = Float64Array.from(u64(facts.since), Number);
    this.until = Float64Array.from(u64(facts.until), Number);
    this.instruction = u32(facts.instruction);
    this.visit = u32(facts.visit);
    this.copies = copiesOf(facts);
    const [x, y, z] = model.trace.launch.block;
    this.#warpsOfBlock = Math.ceil((x * y * z) / LANES);
    this.rows = this.#findRows();
    this.slots = this.rows.map(([first]) => this.slot[first]!);
    this.range = [this.since.reduce((a, b) => Math.min(a, b), Infinity), this.until.reduce((a, b) => Math.max(a, b), 0)];
  }

  /** Each slot's spans stand together, and in them each warp's. */
  #findRows(): [number, number][] {
    const rows: [number, number][] = [];
    for (let i = 0; i < this.count; i++) {
      if (i === 0 || this.slot[i] !== this.slot[i - 1]) rows.push([i, i]);
      rows.at(-1)![1] = i + 1;
      const own = this.#ofWarp.get(this.warp[i]!);
      if (own) own[1] = i + 1;
      else this.#ofWarp.set(this.warp[i]!, [i, i + 1]);
    }
    return rows;
  }

  /** The name of a span's state, as it is read. */
  name(span: number): string {
    return readable(this.facts.states[this.state[span]!]!);
  }

  /** What is at a cycle of a row; null where no warp was there. */
  at(row: number, cycle: number): number | null {
    const [first, stop] = this.rows[row]!;
    const span = first + upper(this.since.subarray(first, stop), cycle) - 1;
    return span >= first && cycle < this.until[span]! ? span : null;
  }

  /** A span's warp, by its block and its number there. */
  place(span: number): { block: number; warp: number } {
    return this.#placeOf(this.warp[span]!);
  }

  #placeOf(warp: number): { block: number; warp: number } {
    return { block: Math.floor(warp / this.#warpsOfBlock), warp: warp % this.#warpsOfBlock };
  }

  /** Who has issued a copy, in words. */
  copyPlace(copy: CopySpan): string {
    const { block, warp } = this.#placeOf(copy.warp);
    return `block ${block}, warp ${warp}`;
  }

  /** The warp of the trace that a span is of; null where it was not recorded. */
  recorded(span: number): number | null {
    const { block, warp } = this.place(span);
    const found = this.#model.trace.warps.findIndex((one) => one.block === block && one.warp === warp);
    return found < 0 ? null : found;
  }

  /** The spans of a warp of the trace: its first, and the one behind its last; null where it is
   * reported of none. */
  spansOf(warp: number): readonly [number, number] | null {
    const one = this.#model.trace.warps[warp]!;
    return this.#ofWarp.get(one.block * this.#warpsOfBlock + one.warp) ?? null;
  }

  /** The step of the trace that a span belongs to; null where that was not recorded. */
  stepOf(span: number): number | null {
    const warp = this.recorded(span);
    if (warp === null) return null;
    let left = this.visit[span]!;
    for (const step of this.#model.stepsOf(warp)) {
      if (this.#model.instruction[step] === this.instruction[span] && left-- === 0) return step;
    }
    return null;
  }

  /** The span in which a warp's step was issued, or the last that it waited; null where none is. */
  spanOf(warp: number, step: number): number | null {
    const own = this.spansOf(warp);
    if (!own || step < 0) return null;
    const instruction = this.#model.instruction[step];
    let visit = 0;
    for (const one of this.#model.stepsOf(warp)) {
      if (one >= step) break;
      if (this.#model.instruction[one] === instruction) visit++;
    }
    for (let span = own[1] - 1; span >= own[0]; span--) {
      if (this.instruction[span] === instruction && this.visit[span] === visit) return span;
    }
    return null;
  }

  /** What there is to say of a span. */
  describe(span: number): { title: string; where: string; code: string } {
    const [since, until] = [this.since[span]!, this.until[span]!];
    const { block, warp } = this.place(span);
    const instruction = this.instruction[span]!;
    const cycles = `cycles ${since.toLocaleString()} to ${until.toLocaleString()} (${(until - since).toLocaleString()})`;
    return {
      title: `${this.name(span)}, ${cycles}`,
      where: `slot ${this.slot[span]}: block ${block}, warp ${warp}, ${this.#model.place(instruction)}`,
      code: this.#model.trace.code[instruction]?.text ?? "",
    };
  }

  /** The states that there are, each with its cycles, the most frequent first. */
  totals(): { name: string; cycles: number }[] {
    const sums = new Float64Array(this.facts.states.length);
    for (let i = 0; i < this.count; i++) sums[this.state[i]!]! += this.until[i]! - this.since[i]!;
    const found = this.facts.states.map((name, i) => ({ name, cycles: sums[i]! }));
    return found.filter((one) => one.cycles > 0).sort((a, b) => b.cycles - a.cycles);
  }
}

function copiesOf(facts: ModelledTime): CopySpan[] {
  const made = facts.copies;
  if (!made) return [];
  const [warp, instruction, since, until] = [u32(made.warp), u32(made.instruction), u64(made.since), u64(made.until)];
  return Array.from(warp, (one, row) => ({ warp: one, instruction: instruction[row]!, since: Number(since[row]), until: Number(until[row]) }));
}

/** Copies in rows, so that none overlaps another of its row. */
export function copyRows(copies: readonly CopySpan[]): CopySpan[][] {
  const rows: CopySpan[][] = [];
  for (const copy of copies) {
    const free = rows.find((row) => row.at(-1)!.until <= copy.since);
    if (free) free.push(copy);
    else rows.push([copy]);
  }
  return rows;
}

/** A state's name as it is read. */
export function readable(state: string): string {
  return state.replaceAll("_", " ");
}
