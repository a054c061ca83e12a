// The machine in the page: runs launches without a server, in a worker with Python. Its script is
// loaded when a reader first runs a kernel.

import { computed, signal } from "@preact/signals";
import { readKernels } from "./kernels.ts";
import { bytesOf, gunzip } from "./packed.ts";
import type { LaunchRequest, Refusal } from "./schema.ts";
import { show } from "./state.ts";

/** Whether the page runs kernels itself. */
export const ownMachine = computed(() => !!show.value?.machine);

/** What the machine does that a reader waits for. */
export const waitingFor = signal("");

/** How long the machine took: to start, if it did, and for the last run, of two launches where they
 * are compared. */
export const took = signal<{ readonly start: number | null; readonly run: number } | null>(null);

/** As for runs of the server, which `--seconds` sets there. */
const SECONDS = 30;

const TRACE = "T".charCodeAt(0);

interface Message {
  readonly ready?: boolean;
  readonly failed?: string;
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly milliseconds?: number;
}

let worker: Worker | null = null;

/** The bytes of a launch's trace, or why there are none. */
export async function runInPage(asked: LaunchRequest): Promise<Uint8Array<ArrayBuffer> | Refusal> {
  const kernels = await readKernels();
  const compiled = kernels.compiled(asked);
  if (typeof compiled !== "string") return compiled;
  try {
    const start = worker ? null : await begin();
    waitingFor.value = "Running the kernel …";
    const { bytes, milliseconds } = await answered(worker!, SECONDS, { request: JSON.stringify({ ...asked, ptx: compiled }) });
    if (bytes![0] === TRACE) {
      const before = took.peek();
      took.value = { start: start ?? before?.start ?? null, run: milliseconds! + (before?.run ?? 0) };
      return bytes!.slice(1);
    }
    return JSON.parse(new TextDecoder().decode(bytes!.slice(1))) as Refusal;
  } catch (error) {
    worker?.terminate();
    worker = null;
    return { kind: "stopped", message: error instanceof Error ? error.message : String(error), errors: [] };
  } finally {
    waitingFor.value = "";
  }
}

/** Starts the worker; gives the milliseconds that it took until it can run a kernel. */
async function begin(): Promise<number> {
  const began = performance.now();
  waitingFor.value = "Loading the reference machine …";
  const files = await unpacked(await script());
  waitingFor.value = "Starting the reference machine …";
  const source = new Blob([files["worker.js"]!], { type: "text/javascript" });
  const url = URL.createObjectURL(source);
  worker = new Worker(url); // not a module: files may not start those
  await answered(worker, 2 * SECONDS, { files });
  return performance.now() - began;
}

/** What the worker answers to a message. Errors are those that a reader sees. */
function answered(to: Worker, seconds: number, message: unknown): Promise<Message> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => {
      reject(new Error(`The run was stopped after ${seconds} seconds, the time limit in the page. If the kernel contains an endless loop, set max. instructions to find it.`));
    }, 1000 * seconds);
    const end = (finish: () => void) => {
      clearTimeout(late);
      finish();
    };
    to.onmessage = ({ data }: MessageEvent<Message>) => end(() => (data.failed ? reject(new Error(failure(data.failed))) : resolve(data)));
    to.onerror = (event) => end(() => reject(new Error(failure(event.message || "its worker did not start"))));
    to.postMessage(message);
  });
}

function failure(reason: string): string {
  const memory = /RangeError|out of memory|MemoryError/i.test(reason);
  return memory ? "The run needs more memory than the browser can provide." : `The reference machine in the page stopped: ${reason}`;
}

/** The text of the machine's script, which stays in the page. */
function script(): Promise<string> {
  const place = globalThis as { warploomMachine?: string };
  if (place.warploomMachine) return Promise.resolve(place.warploomMachine);
  const url = show.value!.machine;
  return new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = url;
    element.onload = () => (place.warploomMachine ? resolve(place.warploomMachine) : reject(new Error(`${url} is not the script of the reference machine.`)));
    element.onerror = () => {
      element.remove();
      reject(new Error(`The script of the reference machine cannot be loaded from ${url}. \`python tools/build_machine.py FOLDER\` writes this script.`));
    };
    document.head.append(element);
  });
}

/** The files in the script's text: a list of names and sizes, then their contents. */
async function unpacked(text: string): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
  const bytes = await gunzip(bytesOf(text));
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const list = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as [string, number][];
  const files: Record<string, Uint8Array<ArrayBuffer>> = {};
  let at = 4 + length;
  for (const [name, size] of list) {
    files[name] = bytes.slice(at, at + size);
    at += size;
  }
  return files;
}
