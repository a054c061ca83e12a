// The PTX of an exported page's kernels: as they are, and with another value of one of their numbers.
// A page has no compiler of CUDA C++, so that its export compiles them for a range of values.

import { signal } from "@preact/signals";
import type { CompiledKernel, EditableNumber, LaunchRequest, Refusal } from "./schema.ts";
import { bytesOf, gunzip } from "./packed.ts";

const LIST = "warploom-kernels";

export class Kernels {
  private readonly kernels: readonly CompiledKernel[];

  constructor(kernels: readonly CompiledKernel[]) {
    this.kernels = kernels;
  }

  /** The kernel whose source is a text but for one number, for a device if it was compiled for that. */
  private near(asked: LaunchRequest): CompiledKernel | null {
    const fitting = this.kernels.filter((kernel) => kernel.source === asked.source || editOf(kernel, asked.source));
    return fitting.find((kernel) => kernel.device === asked.device) ?? fitting[0] ?? null;
  }

  /** The PTX that a launch runs, or why there is none. */
  compiled(asked: LaunchRequest): string | Refusal {
    if (asked.ptx) return asked.ptx;
    const kernel = this.near(asked);
    if (!kernel) return refused("This page has no compiler for CUDA C++. Without a server, you can change one marked number in the kernel, or edit the PTX (Edit PTX). For other changes, use `warploom learn` or `warploom view`.");
    if (kernel.source === asked.source) return textOf(kernel, kernel.ptx);
    const { number, value } = editOf(kernel, asked.source)!;
    const changes = number.values[value];
    if (changes !== undefined) return textOf(kernel, withChanges(kernel, changes));
    const line = asked.source.slice(0, number.start).split("\n").length;
    return refused(`Without a server, ${kernel.source.slice(number.start, number.end)} can be changed to ${listed(number)}, but not to ${value}.`, line);
  }

  /** The numbers of a source that a reader can change; where one is changed, only that one. */
  numbersOf(source: string): readonly EditableNumber[] {
    for (const kernel of this.kernels) {
      if (kernel.source === source) return kernel.numbers;
      const edit = editOf(kernel, source);
      if (edit) return [{ ...edit.number, end: edit.number.end + source.length - kernel.source.length }];
    }
    return [];
  }
}

/** The values of a number, as a reader can be told them. */
export function listed(number: EditableNumber): string {
  const values = Object.keys(number.values).sort((a, b) => Number(a) - Number(b));
  const parts: string[] = [];
  for (let first = 0; first < values.length; ) {
    let last = first;
    while (last + 1 < values.length && /^\d+$/.test(values[last]!) && Number(values[last + 1]) === Number(values[last]) + 1) last += 1;
    parts.push(last - first > 1 ? `${values[first]} to ${values[last]}` : values.slice(first, last + 1).join(", "));
    first = last + 1;
  }
  return parts.join(", ");
}

/** The one number in which a text differs from a kernel's source, and its value there. */
function editOf(kernel: CompiledKernel, text: string): { number: EditableNumber; value: string } | null {
  for (const number of kernel.numbers) {
    const rest = kernel.source.length - number.end;
    if (text.length < number.start + rest) continue;
    const given = text.slice(number.start, text.length - rest);
    if (text.slice(0, number.start) !== kernel.source.slice(0, number.start) || text.slice(text.length - rest) !== kernel.source.slice(number.end)) continue;
    if (!/^(?:\d+\.?\d*|\.\d+)$/.test(given)) continue;
    const value = Object.keys(number.values).find((known) => Number(known) === Number(given) && isReal(known) >= isReal(given));
    return { number, value: value ?? given };
  }
  return null;
}

function isReal(text: string): number {
  return text.includes(".") ? 1 : 0;
}

function withChanges(kernel: CompiledKernel, which: number): readonly number[] {
  const made: number[] = [];
  let at = 0;
  for (const [start, end, lines] of kernel.changes[which]!) {
    made.push(...kernel.ptx.slice(at, start), ...lines);
    at = end;
  }
  return [...made, ...kernel.ptx.slice(at)];
}

function textOf(kernel: CompiledKernel, lines: readonly number[]): string {
  return lines.map((line) => kernel.lines[line]).join("\n");
}

function refused(message: string, line = 0): Refusal {
  return { kind: "compile", message, errors: line ? [{ line, message }] : [] };
}

/** The kernels of the page, once they are read. */
export const kernels = signal<Kernels | null>(null);

/** Reads the kernels that the page came with. */
export async function readKernels(): Promise<Kernels> {
  if (kernels.peek()) return kernels.peek()!;
  const text = document.getElementById(LIST)?.textContent;
  const list = text ? (JSON.parse(new TextDecoder().decode(await gunzip(bytesOf(text)))) as CompiledKernel[]) : [];
  return (kernels.value = new Kernels(list));
}
