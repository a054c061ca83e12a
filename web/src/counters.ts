// The report's counters up to a step: sums over the trace, cached at regular steps.

import { count } from "./bits.ts";
import type { Model } from "./model.ts";
import { COSTS, DIVERGED, MET } from "./schema.ts";

const BASIC = [
  "warp_instructions",
  "thread_instructions",
  "thread_instructions_predicated_on",
  "branches",
  "divergent_branches",
  "reconvergences",
  "barriers",
] as const;

const SPACES: Record<string, string> = { global: "global", local: "local", shared: "shared", const: "constant" };
const EVERY = 2048;

/** Sums that grow from step to step; `names` say what each is. */
export class Tallies {
  readonly names: string[];
  readonly #model: Model;
  readonly #width: number;
  readonly #kept: Float64Array[] = [];
  readonly #place = new Map<string, number>();

  constructor(model: Model) {
    this.#model = model;
    this.names = [...BASIC];
    for (const site of model.trace.sites) {
      const kind = `${SPACES[site.space]}_${site.op}`;
      if (this.#place.has(kind)) continue;
      this.#place.set(kind, this.names.length);
      this.names.push(...COSTS.map((cost) => `${kind}_${cost}`));
    }
    this.#width = this.names.length;
  }

  /** The counts of all steps before `time`, by the names of the report. */
  upTo(time: number): Float64Array {
    const wanted = Math.floor(time / EVERY);
    while (this.#kept.length <= wanted) {
      const last = this.#kept.length - 1;
      const from = this.#kept[last] ?? new Float64Array(this.#width);
      const next = last < 0 ? from : this.#sum(from, last * EVERY, (last + 1) * EVERY);
      this.#kept.push(next);
    }
    return this.#sum(this.#kept[wanted]!, wanted * EVERY, time);
  }

  #sum(from: Float64Array, first: number, end: number): Float64Array {
    const sums = from.slice();
    const model = this.#model;
    const { code, states } = model.trace;
    for (let step = first; step < end; step++) {
      const made = code[model.instruction[step]!]!;
      const marks = model.marks[step]!;
      sums[0]! += 1;
      sums[1]! += count(states[model.state[step]!]!.active);
      sums[2]! += count(model.executing[step]!);
      if (made.is_branch) sums[3]! += 1;
      if (marks & DIVERGED) sums[4]! += 1;
      if (marks & MET) sums[5]! += 1;
      if (made.is_barrier) sums[6]! += 1;
      model.eachCost(step, (site, cost) => {
        const at = this.#place.get(`${SPACES[site.space]}_${site.op}`)!;
        for (let i = 0; i < cost.length; i++) sums[at + i]! += cost[i]!;
      });
    }
    return sums;
  }
}

/** What a line or an instruction has had: executions, lanes active on average, and accesses. */
export interface LineCount {
  readonly executions: number;
  readonly average: number;
  readonly requests: number;
  readonly sectors: number;
  /** Requests to shared memory, and the passes that they took. */
  readonly sharedRequests: number;
  readonly passes: number;
}

interface Sums {
  executions: number;
  lanes: number;
  requests: number;
  sectors: number;
  sharedRequests: number;
  passes: number;
}

const known = new WeakMap<Model, Sums[]>();

/** Of each instruction, what it has had in the whole trace. */
export function byInstruction(model: Model): Sums[] {
  const found = known.get(model);
  if (found) return found;
  const rows = model.trace.code.map((): Sums => ({ executions: 0, lanes: 0, requests: 0, sectors: 0, sharedRequests: 0, passes: 0 }));
  for (let step = 0; step < model.count; step++) {
    const row = rows[model.instruction[step]!]!;
    row.executions += 1;
    row.lanes += count(model.stateOf(step).active);
    model.eachCost(step, (site, cost) => {
      if (site.space === "shared") {
        row.sharedRequests += cost[0]!;
        row.passes += cost[9]!;
      } else {
        row.requests += cost[0]!;
        row.sectors += cost[1]!;
      }
    });
  }
  known.set(model, rows);
  return rows;
}

/** Several instructions as one line: executions are those of the most frequent. */
export function together(rows: readonly Sums[]): LineCount {
  const sum = (of: (row: Sums) => number) => rows.reduce((total, row) => total + of(row), 0);
  const all = sum((row) => row.executions);
  return {
    executions: Math.max(...rows.map((row) => row.executions)),
    average: all ? sum((row) => row.lanes) / all : 0,
    requests: sum((row) => row.requests),
    sectors: sum((row) => row.sectors),
    sharedRequests: sum((row) => row.sharedRequests),
    passes: sum((row) => row.passes),
  };
}
