// A trace, made ready for questions: what was step t, what did warp w do then, what did register r
// hold. Every answer is a look-up; nothing is replayed.

import { Asynchronous } from "./asynchronous.ts";
import { Tallies } from "./counters.ts";
import { Spins } from "./spins.ts";
import { DIVERGED, MET, type Allocated, type CallFrame, type Code, type Fault, type Shape, type Site, type State, type Trace } from "./schema.ts";

/** Kinds of events, in the order of their numbers. */
export const EVENTS = [
  "divergence",
  "reconvergence",
  "barrier",
  "conflict",
  "uncoalesced",
  "fault",
] as const;
export type EventKind = (typeof EVENTS)[number];

export interface Events {
  /** Steps, in rising order, and the kind of event at each. */
  readonly step: Uint32Array;
  readonly kind: Uint8Array;
}

export interface Access {
  readonly site: Site;
  readonly shape: Shape;
  readonly base: number;
  readonly step: number;
}

/** What a warp does at a moment. */
export interface Moment {
  /** The step that it executes or has executed last; -1 before its first. */
  readonly step: number;
  /** How many of its steps were before that one. */
  readonly nth: number;
  readonly state: State;
  readonly executing: number;
  readonly status: Status;
}

export type Status = "waiting to start" | "executing" | "ready" | "at a barrier" | "ended" | "stopped" | "not recorded";

export class Model {
  readonly trace: Trace;
  readonly count: number;
  readonly warp: Uint32Array;
  readonly instruction: Uint32Array;
  readonly state: Uint32Array;
  readonly executing: Uint32Array;
  readonly marks: Uint8Array;
  readonly events: Events;
  readonly tallies: Tallies;
  readonly spins: Spins;
  /** Null where nothing of it was recorded. */
  readonly asynchronous: Asynchronous | null;

  readonly #warpStart: Uint32Array;
  readonly #warpSteps: Uint32Array;
  readonly #accessStart: Uint32Array;
  readonly #accessSite: Uint32Array;
  /** Instructions that access shared memory. */
  readonly #shared: ReadonlySet<number>;
  readonly #accessShape: Uint32Array;
  readonly #accessBase: BigUint64Array;
  #writes: Map<number, { step: number[]; value: number[] }> | null = null;
  readonly #calls = new Map<number, number[]>();
  readonly #anyCalls: boolean;
  readonly #writeStart: Uint32Array;
  readonly #writeValue: Uint32Array;
  readonly #narrow: Uint32Array;
  readonly #wide: BigUint64Array;

  constructor(trace: Trace) {
    const steps = trace.steps;
    this.trace = trace;
    this.count = steps.count;
    this.warp = u32(steps.warp);
    this.instruction = u32(steps.instruction);
    this.state = u32(steps.state);
    this.executing = u32(steps.executing);
    this.marks = steps.marks;
    const made = trace.accesses;
    this.#accessSite = u32(made.site);
    this.#shared = new Set(trace.sites.filter((site) => site.space === "shared").map((site) => site.instruction));
    this.#accessShape = u32(made.shape);
    this.#accessBase = u64(made.base);
    this.#narrow = u32(trace.writes.narrow);
    this.#wide = u64(trace.writes.wide);
    this.#writeStart = starts(u32(trace.writes.step), this.count);
    this.#writeValue = u32(trace.writes.value);
    this.#anyCalls = trace.code.some((code) => code.calls);
    this.#accessStart = starts(u32(made.step), this.count);
    [this.#warpStart, this.#warpSteps] = byWarp(this.warp, trace.warps.length);
    this.events = this.#findEvents();
    this.tallies = new Tallies(this);
    this.spins = new Spins(this);
    this.asynchronous = trace.asynchronous ? new Asynchronous(this, trace.asynchronous) : null;
  }

  /** Whether lanes of any warp have diverged. */
  get diverges(): boolean {
    return this.marks.some((mark) => (mark & DIVERGED) !== 0);
  }

  // ---- steps --------------------------------------------------------------------------------

  code(step: number): Code {
    return this.trace.code[this.instruction[step]!]!;
  }

  /** The unit that executes an instruction, by the name of its colour in the style. */
  unitOf(instruction: number): "arithmetic" | "memory" | "shared" | "control" | "wait" {
    const code = this.trace.code[instruction]!;
    if (code.is_barrier) return "wait";
    if (code.unit === "control") return "control";
    if (code.unit === "texture" || this.#shared.has(instruction)) return "shared";
    return code.unit === "memory" || code.unit === "atomic" ? "memory" : "arithmetic";
  }

  stateOf(step: number): State {
    return this.trace.states[this.state[step]!]!;
  }

  /** The steps of a warp, in order. */
  stepsOf(warp: number): Uint32Array {
    return this.#warpSteps.subarray(this.#warpStart[warp]!, this.#warpStart[warp + 1]!);
  }

  /** How many steps of a warp come before step `time`, that one among them. */
  stepsUntil(warp: number, time: number): number {
    return upper(this.stepsOf(warp), time);
  }

  /** What a warp does at step `time`; `time` may be the number of steps: the end. */
  moment(warp: number, time: number): Moment {
    const steps = this.stepsOf(warp);
    const nth = upper(steps, time) - 1;
    if (nth < 0) {
      const existing = this.trace.warps[warp]!.existing;
      const state = { active: existing, off: nobodyOff(existing), stack: [], splits: [] };
      return { step: -1, nth, state, executing: 0, status: "waiting to start" };
    }
    const step = steps[nth]!;
    const over = time > step && nth === steps.length - 1;
    const final = this.trace.states[this.trace.warps[warp]!.final]!;
    const state = over && time >= this.count ? final : this.stateOf(step);
    const executing = over ? 0 : this.executing[step]!;
    return { step, nth, state, executing, status: this.#status(warp, step, time, over) };
  }

  #status(warp: number, step: number, time: number, over: boolean): Status {
    if (step === time) return "executing";
    if (over && this.trace.warps[warp]!.ended) return "ended";
    if (over && this.trace.left_out.steps > 0 && !this.trace.error) return "not recorded";
    if (this.code(step).is_barrier) return "at a barrier";
    return over ? "stopped" : "ready";
  }

  // ---- accesses -----------------------------------------------------------------------------

  accessesOf(step: number): Access[] {
    const found: Access[] = [];
    for (let i = this.#accessStart[step]!; i < this.#accessStart[step + 1]!; i++) found.push(this.#access(i, step));
    return found;
  }

  /** Every access, with its number. */
  eachAccess(visit: (access: Access, number: number) => void): void {
    for (let step = 0; step < this.count; step++) {
      for (let i = this.#accessStart[step]!; i < this.#accessStart[step + 1]!; i++) visit(this.#access(i, step), i);
    }
  }

  /** The number of accesses of a step, and for each the cost that the rule counts. */
  eachCost(step: number, visit: (site: Site, cost: readonly number[]) => void): void {
    for (let i = this.#accessStart[step]!; i < this.#accessStart[step + 1]!; i++) {
      visit(this.trace.sites[this.#accessSite[i]!]!, this.trace.shapes[this.#accessShape[i]!]!.cost);
    }
  }

  /** The accesses of the last step of a warp, up to `time`, that had any. */
  lastAccesses(warp: number, time: number): Access[] {
    const steps = this.stepsOf(warp);
    for (let nth = upper(steps, time) - 1; nth >= 0; nth--) {
      const found = this.accessesOf(steps[nth]!);
      if (found.length > 0) return found;
    }
    return [];
  }

  #access(i: number, step: number): Access {
    const site = this.trace.sites[this.#accessSite[i]!]!;
    const shape = this.trace.shapes[this.#accessShape[i]!]!;
    return { site, shape, base: Number(this.#accessBase[i]!), step };
  }

  // ---- registers ----------------------------------------------------------------------------

  /** What a register holds in each lane before step `time` (after it, if `after`). */
  register(warp: number, register: number, time: number, after = false): (number | bigint)[] | null {
    if (!this.trace.warps[warp]!.registers) return null;
    const wide = this.trace.registers[register]!.type.endsWith("64");
    const written = this.#written().get(warp * this.trace.registers.length + register);
    const before = written ? upper(written.step, after ? time : time - 1) : 0;
    if (!written || before === 0) return Array<number>(32).fill(0);
    const row = written.value[before - 1]! * 32;
    if (wide) return Array.from(this.#wide.subarray(row, row + 32));
    return Array.from(this.#narrow.subarray(row, row + 32));
  }

  /** The step, up to `time`, at which a register was written last; -1 where there is none. */
  lastWrite(warp: number, register: number, time: number): number {
    const written = this.#written().get(warp * this.trace.registers.length + register);
    return written?.step[upper(written.step, time) - 1] ?? -1;
  }

  #written(): Map<number, { step: number[]; value: number[] }> {
    if (this.#writes) return this.#writes;
    const made = this.trace.writes;
    const [step, register, value] = [u32(made.step), u32(made.register), u32(made.value)];
    this.#writes = new Map();
    for (let i = 0; i < made.count; i++) {
      const key = this.warp[step[i]!]! * this.trace.registers.length + register[i]!;
      let row = this.#writes.get(key);
      if (!row) this.#writes.set(key, (row = { step: [], value: [] }));
      row.step.push(step[i]!);
      row.value.push(value[i]!);
    }
    return this.#writes;
  }

  // ---- calls --------------------------------------------------------------------------------

  /** The functions that a lane is in after the instructions of its warp up to step `time`, the
   * innermost first, each with its line: of the lane's last instruction, or of a call. */
  callStack(warp: number, lane: number, time: number): CallFrame[] {
    const steps = this.#callSteps(warp);
    const calls: number[] = [];
    const at = this.#lastActive(warp, lane, time);
    if (at < 0) return [];
    for (const step of steps) {
      if (step >= at) break;
      if (!(this.executing[step]! >>> lane & 1)) continue;
      if (this.code(step).calls) calls.push(this.instruction[step]!);
      else calls.pop();
    }
    return [this.instruction[at]!, ...calls.reverse()].flatMap((instruction) => {
      const code = this.trace.code[instruction]!;
      return (this.trace.frames[code.frames] ?? []).map((frame, depth) => (depth === 0 ? { ...frame, line: code.line } : frame));
    });
  }

  /** The steps of a warp that call functions that are not inlined, or return from them. */
  #callSteps(warp: number): number[] {
    let found = this.#calls.get(warp);
    if (!found) {
      found = this.#anyCalls ? [...this.stepsOf(warp)].filter((step) => this.code(step).calls || this.code(step).returns) : [];
      this.#calls.set(warp, found);
    }
    return found;
  }

  /** The last step up to `time` at which a lane was active; -1 where there is none. */
  #lastActive(warp: number, lane: number, time: number): number {
    const steps = this.stepsOf(warp);
    for (let nth = upper(steps, time) - 1; nth >= 0; nth--) {
      if (this.stateOf(steps[nth]!).active >>> lane & 1) return steps[nth]!;
    }
    return -1;
  }

  /** Whether a step does what an earlier one of its warp did, and leaves all as it was then:
   * registers, and memory but for atomics that compare and find another value. */
  isRepeated(step: number, earlier: number): boolean {
    if (this.instruction[step] !== this.instruction[earlier] || this.state[step] !== this.state[earlier]) return false;
    if (this.executing[step] !== this.executing[earlier] || !this.trace.warps[this.warp[step]!]!.registers) return false;
    const accesses = this.#accessStart[step + 1]! - this.#accessStart[step]!;
    if (accesses !== this.#accessStart[earlier + 1]! - this.#accessStart[earlier]!) return false;
    for (let i = 0; i < accesses; i++) {
      const [a, b] = [this.#accessStart[step]! + i, this.#accessStart[earlier]! + i];
      if (this.#accessSite[a] !== this.#accessSite[b] || this.#accessShape[a] !== this.#accessShape[b] || this.#accessBase[a] !== this.#accessBase[b]) return false;
    }
    const writes = this.#writeStart[step + 1]! - this.#writeStart[step]!;
    if (writes !== this.#writeStart[earlier + 1]! - this.#writeStart[earlier]!) return false;
    for (let i = 0; i < writes; i++) {
      if (this.#writeValue[this.#writeStart[step]! + i] !== this.#writeValue[this.#writeStart[earlier]! + i]) return false;
    }
    return true;
  }

  // ---- events -------------------------------------------------------------------------------

  #findEvents(): Events {
    const at: number[] = [];
    const kinds: number[] = [];
    const { code, sites, shapes } = this.trace;
    const [divergence, reconvergence, barrier, conflict, uncoalesced, fault] = EVENTS.map((_, kind) => kind) as [number, number, number, number, number, number];
    const barriers = code.map((one) => one.is_barrier);
    const add = (step: number, kind: number) => {
      at.push(step);
      kinds.push(kind);
    };
    const met = new Uint8Array(this.trace.warps.length);
    for (let step = 0; step < this.count; step++) {
      const warp = this.warp[step]!;
      if (met[warp]) add(step, reconvergence);
      met[warp] = this.marks[step]! & MET;
      if (this.marks[step]! & DIVERGED) add(step, divergence);
      if (barriers[this.instruction[step]!]) add(step, barrier);
      for (let i = this.#accessStart[step]!; i < this.#accessStart[step + 1]!; i++) {
        const site = sites[this.#accessSite[i]!]!;
        const cost = shapes[this.#accessShape[i]!]!.cost;
        if (site.space === "shared" ? cost[10]! > 0 : site.best > 0 && cost[3]! > site.best) {
          add(step, site.space === "shared" ? conflict : uncoalesced);
        }
      }
    }
    if (this.trace.error && this.count > 0) add(this.count - 1, fault);
    return { step: Uint32Array.from(at), kind: Uint8Array.from(kinds) };
  }

  /** What happens at a step. */
  eventsAt(step: number): EventKind[] {
    const found: EventKind[] = [];
    const { step: steps, kind } = this.events;
    for (let i = upper(steps, step - 1); i < steps.length && steps[i] === step; i++) found.push(EVENTS[kind[i]!]!);
    return found;
  }

  /** The next step with an event after `time` (before it, if `back`), of a warp or of any (-1). */
  nextEvent(time: number, warp: number, back: boolean): number | null {
    const steps = this.events.step;
    const fits = (i: number) => warp < 0 || this.warp[steps[i]!] === warp;
    if (back) {
      for (let i = upper(steps, time - 1) - 1; i >= 0; i--) if (fits(i)) return steps[i]!;
    } else {
      for (let i = upper(steps, time); i < steps.length; i++) if (fits(i)) return steps[i]!;
    }
    return null;
  }

  // ---- places -------------------------------------------------------------------------------

  /** A line of source in words, for an instruction. */
  place(instruction: number): string {
    const code = this.trace.code[instruction];
    if (!code) return "the end";
    return code.file >= 0 && code.line > 0 ? `line ${code.line}` : `PTX line ${code.ptx_line}`;
  }

  /** Where lanes go that do not take the branch of an instruction, and where the others jump. */
  ways(instruction: number): { readonly on: string; readonly to: string } {
    const code = this.trace.code[instruction]!;
    const jumps = code.targets.map((block) => (this.onlyEnds(block) ? "the return" : this.#entry(this.trace.basic_blocks[block]?.start ?? -1, instruction)));
    return { on: this.#entry(instruction + 1, instruction), to: jumps.length ? [...new Set(jumps)].join(" or ") : "the end" };
  }

  /** The line at which lanes continue that reach instruction `first` from the branch `from`. Copies,
   * which the compiler puts on any line, and jumps do not count. */
  #entry(first: number, from: number): string {
    let at = first;
    for (let steps = 0; steps < 32; steps++) {
      const code = this.trace.code[at];
      if (!code) break;
      if (code.is_branch && !code.guarded && code.targets.length === 1) at = this.trace.basic_blocks[code.targets[0]!]!.start;
      else if (/^(mov|cvta)\b/.test(code.text)) at++;
      else return this.#placeFrom(at, from);
    }
    return this.#placeFrom(first, from);
  }

  /** The line of an instruction, with how it lies to a branch that is on the same line. */
  #placeFrom(at: number, from: number): string {
    const [place, own] = [this.place(at), this.place(from)];
    if (place !== own) return place;
    return at > from ? `the rest of ${place}` : `${place} again`;
  }

  /** Whether a basic block does nothing but end threads. */
  onlyEnds(block: number): boolean {
    const made = this.trace.basic_blocks[block];
    const text = made && made.stop - made.start === 1 ? this.trace.code[made.start]!.text : "";
    return /^(ret|exit)\b/.test(text);
  }

  /** The name of a register, with that of the variable whose value it holds. */
  registerName(register: number): string {
    const one = this.trace.registers[register]!;
    return one.variable ? `${one.variable} (${one.name})` : one.name;
  }

  /** The line at which lanes continue that reach a basic block, in words, as `ways` names it. */
  blockPlace(block: number): string {
    const made = this.trace.basic_blocks[block];
    return made ? this.#entry(made.start, -1) : "the end";
  }

  /** An address by the allocation that it lies in. */
  where(space: string, address: number): string {
    const inside = space === "global" || space === "const" ? this.allocation(address) : null;
    return inside ? `${inside.name} + ${address - inside.address}` : "0x" + address.toString(16);
  }

  /** The allocation that an address lies in. */
  allocation(address: number): Allocated | null {
    const found = this.trace.allocations.find((one) => address >= one.address && address < one.address + one.size);
    return found ?? null;
  }

  /** An address that lies in no allocation, by the nearest one. */
  around(address: number): string {
    const nearest = this.nearest(address);
    if (!nearest) return `0x${address.toString(16)}`;
    const beyond = address - nearest.address - nearest.size;
    if (address < nearest.address) return `${nearest.address - address} bytes before the start of ${nearest.name}`;
    if (beyond < 0) return `${nearest.name} + ${address - nearest.address}`;
    return beyond === 0 ? `the first byte after the end of ${nearest.name}` : `${beyond} bytes after the end of ${nearest.name}`;
  }

  /** The allocation that an address is in, or closest to; null where there is none. */
  nearest(address: number): Allocated | null {
    const distance = (one: Allocated) => Math.max(one.address - address, address - one.address - one.size, 0);
    return this.allocation(address) ?? [...this.trace.allocations].sort((a, b) => distance(a) - distance(b))[0] ?? null;
  }

  /** What ended the launch, where step `time` is the one that did. */
  faultAt(time: number): Fault | null {
    return time >= this.count - 1 ? this.trace.fault : null;
  }

  warpName(warp: number): string {
    const one = this.trace.warps[warp]!;
    return `block ${one.block}, warp ${one.warp}`;
  }
}

/** The first index in a rising array after everything up to `value`. */
export function upper(row: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nobodyOff(existing: number) {
  return { absent: ~existing >>> 0, exited: 0, other_path: 0, gathering: 0, syncing: 0, at_barrier: 0 };
}

/** Bytes as numbers; a copy, for they need not be aligned. */
export function u32(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.slice().buffer);
}

export function u64(bytes: Uint8Array): BigUint64Array {
  return new BigUint64Array(bytes.slice().buffer);
}

/** For rows that name steps in rising order: where those of each step begin. */
function starts(step: Uint32Array, count: number): Uint32Array {
  const found = new Uint32Array(count + 1);
  for (const one of step) found[one + 1]!++;
  for (let i = 0; i < count; i++) found[i + 1]! += found[i]!;
  return found;
}

/** The steps of each warp, one warp after the other, and where each begins. */
function byWarp(warp: Uint32Array, warps: number): [Uint32Array, Uint32Array] {
  const first = new Uint32Array(warps + 1);
  for (const one of warp) first[one + 1]!++;
  for (let i = 0; i < warps; i++) first[i + 1]! += first[i]!;
  const next = first.slice();
  const steps = new Uint32Array(warp.length);
  for (let step = 0; step < warp.length; step++) steps[next[warp[step]!]!++] = step;
  return [first, steps];
}
