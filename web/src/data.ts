// What is in memory: the arrays that a launch accesses, and for each element its value, who wrote it
// and who read it, at any step.

import { lanesOf } from "./bits.ts";
import { u32, upper, type Model } from "./model.ts";
import { failedSwaps } from "./swaps.ts";
import { say } from "./words.ts";

/** An array: an allocation, or one in the shared memory of a block. */
export interface ArrayView {
  readonly id: string;
  readonly name: string;
  readonly space: "global" | "shared";
  readonly block: number;
  readonly address: number;
  readonly size: number;
  /** As NumPy calls it. */
  readonly type: string;
  readonly width: number;
  readonly shape: readonly number[];
  readonly first: Uint8Array | null;
}

const READ = 1;
const WRITE = 2;

/** An access of one lane to one element. */
export interface Touch {
  readonly step: number;
  readonly lane: number;
}

export interface Cell {
  /** Null where it is not known. */
  readonly value: number | bigint | null;
  readonly before: number | bigint | null;
  readonly written: Touch | null;
  readonly read: Touch | null;
  /** It was read before anything was written to it, in shared memory. */
  readonly unwritten: boolean;
}

/** The touches of an array's elements: those of element e are at start[e] up to start[e + 1]. */
interface Touches {
  readonly start: Uint32Array;
  readonly step: Uint32Array;
  readonly lane: Uint8Array;
  readonly kind: Uint8Array;
  /** For a write, where its value is: the row of the changes, and the byte there. */
  readonly row: Int32Array;
  readonly at: Uint32Array;
}

const BYTES: Record<string, number> = { "8": 1, "16": 2, "32": 4, "64": 8 };

export function bytesOf(type: string): number {
  return BYTES[/\d+$/.exec(type)?.[0] ?? "32"] ?? 4;
}

export class Data {
  readonly arrays: readonly ArrayView[];
  readonly #model: Model;
  readonly #touches = new Map<string, Touches>();
  readonly #rows = new Map<number, number>();
  readonly #recorded: boolean;

  constructor(model: Model) {
    this.#model = model;
    const { changes } = model.trace;
    const [access, value] = [u32(changes.access), u32(changes.value)];
    for (let i = 0; i < changes.count; i++) this.#rows.set(access[i]!, value[i]!);
    this.#recorded = model.trace.warps.every((one) => one.registers);
    this.arrays = [...this.#global(), ...this.#shared()];
  }

  #global(): ArrayView[] {
    return this.#model.trace.allocations
      .filter((one) => one.size > 0)
      .map((one) => {
        const type = one.type || "uint32";
        const last = one.shape.length > 1 ? one.shape.at(-1)! : 32;
        const first = one.first.length === one.size ? one.first : null;
        const place = { id: `g${one.address}`, name: one.name, space: "global" as const, block: -1 };
        return { ...place, address: one.address, size: one.size, type, width: Math.min(64, last), shape: one.shape, first };
      });
  }

  #shared(): ArrayView[] {
    const { trace } = this.#model;
    const blocks = [...new Set(trace.warps.map((one) => one.block))];
    return trace.shared.flatMap((one) => {
      const type = this.#typeOfShared(one.address, one.size);
      return blocks.map((block) => ({
        id: `s${block}.${one.address}`,
        name: blocks.length > 1 ? `${one.name} ${say(`of block ${block}`)}` : one.name,
        space: "shared" as const,
        block,
        address: one.address,
        size: one.size,
        type,
        width: 32,
        shape: [],
        first: new Uint8Array(one.size),
      }));
    });
  }

  /** The type of a shared array's elements, by the instructions that access it. */
  #typeOfShared(address: number, size: number): string {
    const found = new Set<string>();
    this.#model.eachAccess(({ site, shape, base }) => {
      const at = base + (shape.offsets[0] ?? 0);
      if (site.space !== "shared" || at < address || at >= address + size) return;
      const text = this.#model.trace.code[site.instruction]!.text;
      const type = /\.([fsub])(8|16|32|64)\b/.exec(text);
      if (type) found.add(`${{ f: "float", s: "int", u: "int", b: "int" }[type[1]!]!}${type[2]}`);
    });
    return [...found].sort((a, b) => Number(b.startsWith("f")) - Number(a.startsWith("f")))[0] ?? "int32";
  }

  elements(array: ArrayView): number {
    return Math.floor(array.size / bytesOf(array.type));
  }

  /** The array that a step's accesses touch, those that write first. */
  reachedAt(warp: number, time: number): ArrayView | null {
    const accesses = this.#model.lastAccesses(warp, time);
    const order = [...accesses].sort((a, b) => Number(a.site.op === "load") - Number(b.site.op === "load"));
    for (const { site, shape, base } of order) {
      const block = this.#model.trace.warps[warp]!.block;
      const found = this.arrays.find((one) => {
        const at = base + (shape.offsets[0] ?? 0);
        const inside = at >= one.address && at < one.address + one.size;
        return inside && one.space === site.space && (one.block < 0 || one.block === block);
      });
      if (found) return found;
    }
    return null;
  }

  /** The array that the fault at a step is closest to. */
  missedAt(time: number): ArrayView | null {
    const fault = this.#model.faultAt(time);
    const nearest = fault && this.#model.nearest(fault.address);
    return this.arrays.find((one) => one.space === "global" && one.address === nearest?.address) ?? null;
  }

  /** Elements `first` up to `stop` of an array, as they are after step `time`. */
  cells(array: ArrayView, first: number, stop: number, time: number): Cell[] {
    const touches = this.#of(array);
    const found: Cell[] = [];
    for (let element = first; element < stop; element++) found.push(this.#cell(array, touches, element, time));
    return found;
  }

  #cell(array: ArrayView, touches: Touches, element: number, time: number): Cell {
    const begin = touches.start[element]!;
    const own = touches.step.subarray(begin, touches.start[element + 1]!);
    let written = -1;
    let read = -1;
    let earlier = -1;
    for (let i = begin + upper(own, time) - 1; i >= begin && (written < 0 || read < 0 || earlier < 0); i--) {
      const kind = touches.kind[i]!;
      if (kind & WRITE && written < 0) written = i;
      else if (kind & WRITE && touches.step[written]! !== touches.step[i]! && earlier < 0) earlier = i;
      if (kind & READ && read < 0) read = i;
      if (written >= 0 && touches.step[written]! < time && read >= 0) break;
    }
    const now = written >= 0 && touches.step[written] === time;
    const value = this.#value(array, touches, element, written);
    return {
      value,
      before: now ? this.#value(array, touches, element, earlier) : value,
      written: written < 0 ? null : { step: touches.step[written]!, lane: touches.lane[written]! },
      read: read < 0 ? null : { step: touches.step[read]!, lane: touches.lane[read]! },
      unwritten: array.space === "shared" && read >= 0 && this.#readUnwritten(touches, begin, begin + upper(own, time)),
    };
  }

  #readUnwritten(touches: Touches, begin: number, end: number): boolean {
    for (let i = begin; i < end; i++) {
      if (touches.kind[i]! & READ) return true;
      if (touches.kind[i]! & WRITE) return false;
    }
    return false;
  }

  /** What an element holds behind its touch `write`; before all of them where that is -1. */
  #value(array: ArrayView, touches: Touches, element: number, write: number): number | bigint | null {
    const size = bytesOf(array.type);
    if (write >= 0) {
      const row = touches.row[write]!;
      return row < 0 ? null : valueAt(this.#model.trace.changes.values[row]!, touches.at[write]!, array.type);
    }
    if (!array.first || (!this.#recorded && array.space === "shared")) return null;
    return valueAt(array.first, element * size, array.type);
  }

  #of(array: ArrayView): Touches {
    let found = this.#touches.get(array.id);
    if (!found) this.#touches.set(array.id, (found = this.#find(array)));
    return found;
  }

  #find(array: ArrayView): Touches {
    const size = bytesOf(array.type);
    const elements = this.elements(array);
    const rows: number[][] = [];
    const start = new Uint32Array(elements + 1);
    this.#model.eachAccess(({ site, shape, base, step }, number) => {
      if (site.space !== array.space) return;
      if (array.block >= 0 && this.#model.trace.warps[this.#model.warp[step]!]!.block !== array.block) return;
      const kind = site.op === "load" ? READ : site.op === "store" ? WRITE : READ | WRITE;
      const row = kind & WRITE ? (this.#rows.get(number) ?? -1) : -1;
      const failed = kind === (READ | WRITE) ? failedSwaps(this.#model, step, shape.lanes) : 0;
      lanesOf(shape.lanes).forEach((lane, nth) => {
        const from = base + shape.offsets[nth]! - array.address;
        if (from + site.size <= 0 || from >= array.size) return;
        const last = Math.min(elements - 1, Math.floor((from + site.size - 1) / size));
        for (let element = Math.max(0, Math.floor(from / size)); element <= last; element++) {
          start[element + 1]!++;
          rows.push([element, step, lane, (failed >>> lane) & 1 ? READ : kind, row, nth * site.size + element * size - from]);
        }
      });
    });
    for (let i = 0; i < elements; i++) start[i + 1]! += start[i]!;
    const next = start.slice();
    const touches = { start, step: new Uint32Array(rows.length), lane: new Uint8Array(rows.length), kind: new Uint8Array(rows.length), row: new Int32Array(rows.length), at: new Uint32Array(rows.length) };
    for (const [element, step, lane, kind, row, at] of rows) {
      const place = next[element!]!++;
      touches.step[place] = step!;
      touches.lane[place] = lane!;
      touches.kind[place] = kind!;
      touches.row[place] = row!;
      touches.at[place] = at!;
    }
    return touches;
  }
}

const known = new WeakMap<Model, Data>();

/** The data of a run, made when it is first asked for. */
export function dataOf(model: Model): Data {
  let found = known.get(model);
  if (!found) known.set(model, (found = new Data(model)));
  return found;
}

function valueAt(bytes: Uint8Array, at: number, type: string): number | bigint | null {
  if (at < 0 || at + bytesOf(type) > bytes.length) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (type) {
    case "float64":
      return view.getFloat64(at, true);
    case "float32":
      return view.getFloat32(at, true);
    case "float16":
      return half(view.getUint16(at, true));
    case "int64":
      return view.getBigInt64(at, true);
    case "uint64":
      return view.getBigUint64(at, true);
    case "int32":
      return view.getInt32(at, true);
    case "int16":
      return view.getInt16(at, true);
    case "uint16":
      return view.getUint16(at, true);
    case "int8":
      return view.getInt8(at);
    case "uint8":
    case "bool":
      return view.getUint8(at);
  }
  return bytesOf(type) === 8 ? view.getBigUint64(at, true) : view.getUint32(at, true);
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
