// What runs beside the warps: copies, products and stores that were issued and are not awaited yet,
// and the mbarriers that they report to, at any step.

import { u32, upper, type Model } from "./model.ts";
import type { Asynchronous as Facts } from "./schema.ts";

/** Work that one instruction of a block has begun, for one mbarrier or none. */
export interface InFlight {
  readonly kind: string;
  readonly instruction: number;
  /** The step of the first of it, and that one's warp in the trace. */
  readonly step: number;
  readonly warp: number;
  readonly count: number;
  readonly bytes: number;
  /** The mbarrier's name; empty where none is named. */
  readonly barrier: string;
  /** No recorded step waits for it. */
  readonly forgotten: boolean;
}

export interface BarrierState {
  readonly name: string;
  /** Phases that have ended; less than 0 where it is no mbarrier any more. */
  readonly phase: number;
  readonly pending: number;
  readonly expected: number;
  readonly bytes: number;
}

const WORD = 8;

export class Asynchronous {
  readonly #model: Model;
  readonly #facts: Facts;
  readonly #step: Uint32Array;
  readonly #until: Uint32Array;
  readonly #kind: Uint32Array;
  readonly #size: Uint32Array;
  readonly #barrier: Uint32Array;
  /** For each mbarrier, the rows of its states, in order of their steps. */
  readonly #rows: readonly number[][];
  readonly #states: readonly Int32Array[];

  constructor(model: Model, facts: Facts) {
    const { flights, states } = facts;
    this.#model = model;
    this.#facts = facts;
    this.#step = u32(flights.step);
    this.#until = u32(flights.until);
    this.#kind = u32(flights.kind);
    this.#size = u32(flights.size);
    this.#barrier = u32(flights.barrier);
    this.#states = [states.step, states.phase, states.pending, states.expected, states.bytes_left].map((column) => new Int32Array(u32(column).buffer));
    this.#rows = facts.barriers.map(() => []);
    u32(states.barrier).forEach((barrier, row) => this.#rows[barrier]!.push(row));
  }

  /** What a block has in flight behind a step, by instruction and mbarrier. */
  inFlight(block: number, time: number): InFlight[] {
    const { trace, count } = this.#model;
    const found = new Map<string, InFlight>();
    const last = upper(this.#step, time);
    for (let row = 0; row < last; row++) {
      const [step, until] = [this.#step[row]!, this.#until[row]!];
      if (time >= until && until < count) continue;
      const warp = this.#model.warp[step]!;
      if (trace.warps[warp]!.block !== block) continue;
      const [instruction, barrier] = [this.#model.instruction[step]!, this.#barrier[row]!];
      const key = `${instruction}/${barrier}`;
      const known = found.get(key);
      found.set(key, {
        kind: this.#facts.kinds[this.#kind[row]!]!,
        instruction,
        step: known?.step ?? step,
        warp: known?.warp ?? warp,
        count: (known?.count ?? 0) + 1,
        bytes: (known?.bytes ?? 0) + this.#size[row]!,
        barrier: barrier ? this.#name(barrier - 1) : "",
        forgotten: until >= count,
      });
    }
    return [...found.values()];
  }

  /** The mbarriers of a block behind a step, by their addresses. */
  barriers(block: number, time: number): BarrierState[] {
    const own = this.#facts.barriers.map((one, number) => ({ ...one, number })).filter((one) => one.block === block);
    const found: BarrierState[] = [];
    for (const { number } of own.sort((a, b) => a.address - b.address)) {
      const rows = this.#rows[number]!;
      const at = rows.filter((row) => this.#states[0]![row]! <= time).at(-1);
      if (at === undefined) continue;
      const [, phase, pending, expected, bytes] = this.#states.map((column) => column[at]!) as [number, number, number, number, number];
      if (phase >= 0) found.push({ name: this.#name(number), phase, pending, expected, bytes });
    }
    return found;
  }

  /** An mbarrier by the shared array that it is in, else by its address. */
  #name(number: number): string {
    const { address } = this.#facts.barriers[number]!;
    const array = this.#model.trace.shared.find((one) => address >= one.address && address < one.address + one.size);
    if (!array) return `at 0x${address.toString(16)}`;
    const offset = address - array.address;
    if (array.size === WORD) return array.name;
    return offset % WORD === 0 ? `${array.name}[${offset / WORD}]` : `${array.name} + ${offset}`;
  }
}
