// Where the page gets what it shows: from itself (an export), or from the server that gave it.

import { decode } from "@msgpack/msgpack";
import { ownMachine, runInPage } from "./machine.ts";
import { Model } from "./model.ts";
import { bytesOf, gunzip } from "./packed.ts";
import { VERSION, type Explored, type LaunchRequest, type Lesson, type Refusal, type Show, type Trace, type Verdict } from "./schema.ts";

const GONE: Refusal = { kind: "stopped", message: "The server does not answer. Start `warploom view` or `warploom learn` again.", errors: [] };

export const token = new URLSearchParams(location.search).get("token") ?? "";

export function readShow(): Show {
  const found = document.getElementById("warploom-show");
  if (!found) throw new Error("this page contains nothing to show");
  return JSON.parse(found.textContent) as Show;
}

/** Trace number `number`: as the page came with it, else from the server. */
export async function readTrace(number: number): Promise<Model> {
  const own = document.getElementById(`warploom-trace${number}`);
  if (own) return opened(bytesOf(own.textContent));
  const answer = await ask(`/trace/${number}`);
  if (!answer.ok) throw new Error(answer.status === 422 ? ((await answer.json()) as Refusal).message : GONE.message);
  return opened(new Uint8Array(await answer.arrayBuffer()));
}

export async function readLesson(name: string): Promise<Lesson> {
  return (await (await ask(`/lesson/${name}`)).json()) as Lesson;
}

/** Run a launch on the server, or in a page that has none: its trace, or why there is none. */
export async function run(request: LaunchRequest): Promise<Model | Refusal> {
  if (ownMachine.value) {
    const made = await runInPage(request);
    return made instanceof Uint8Array ? opened(made) : made;
  }
  let answer: Response;
  try {
    answer = await ask("/run", { method: "POST", body: JSON.stringify(request) });
  } catch {
    return GONE;
  }
  if ([422, 429].includes(answer.status)) return (await answer.json()) as Refusal;
  if (!answer.ok) return { kind: "stopped", message: await answer.text(), errors: [] };
  return opened(new Uint8Array(await answer.arrayBuffer()));
}

/** Run the launch of an explorable on the server: what was counted in it, or why it did not run; null
 * where the signal ended it. Throws where no server answers. */
export async function explore(explorable: string, values: readonly string[], signal: AbortSignal): Promise<{ model: Model; figure: string; curve: number } | Refusal | null> {
  try {
    const answer = await ask("/explore", { method: "POST", body: JSON.stringify({ explorable, values }), signal });
    if ([422, 429].includes(answer.status)) return (await answer.json()) as Refusal;
    if (!answer.ok) throw new Error(GONE.message);
    const { trace, figure, curve } = decode(new Uint8Array(await answer.arrayBuffer())) as Explored;
    return { model: await opened(new Uint8Array(trace)), figure, curve };
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
}

/** Hold a kernel against a lesson's task: how it did, or why that is not known. */
export async function check(lesson: string, source: string): Promise<Verdict | Refusal> {
  let answer: Response;
  try {
    answer = await ask("/check", { method: "POST", body: JSON.stringify({ lesson, source }) });
  } catch {
    return GONE;
  }
  if (answer.ok) return (await answer.json()) as Verdict;
  if ([422, 429].includes(answer.status)) return (await answer.json()) as Refusal;
  return { kind: "stopped", message: await answer.text(), errors: [] };
}

/** Keep that a lesson was read. */
export async function noteRead(lesson: string): Promise<void> {
  await ask("/progress", { method: "POST", body: JSON.stringify({ lesson }) }).catch(() => null);
}

function ask(path: string, options: RequestInit = {}): Promise<Response> {
  return fetch(path, { ...options, headers: { "X-Warploom-Token": token } });
}

async function opened(bytes: Uint8Array<ArrayBuffer>): Promise<Model> {
  const trace = decode(await gunzip(bytes)) as Trace;
  if (trace.device.warp_size !== 32) {
    throw new Error("this page shows warps of 32 lanes, but the trace has wavefronts of 64 lanes");
  }
  if (trace.version !== VERSION) {
    throw new Error(`the trace uses version ${trace.version} of the schema, but this page reads version ${VERSION}`);
  }
  return new Model(trace);
}
