// What is launched, to be changed and run again, and what the compiler or the launch says to that.

import { batch, signal } from "@preact/signals";
import { working } from "./captions.ts";
import { changed } from "./lesson.tsx";
import { run } from "./load.ts";
import { ownMachine, took, waitingFor } from "./machine.ts";
import { Model } from "./model.ts";
import type { LaunchRequest } from "./schema.ts";
import { editing, editingPtx, labels, launchOpen, lesson, model, open, other, refusal, request, running, runs, show, showWrong } from "./state.ts";

/** The tools of the sanitizer. */
const TOOLS = ["mem", "race", "sync", "init"] as const;

/** Whether the next run is compared with the one that is shown: two versions of a source, or two
 * launches. */
const withPrevious = signal(false);

/** What a second run has different, where two are to be compared. */
const beside = signal<{ device: string; schedule: string; seed: number } | null>(null);

export async function runNow(): Promise<void> {
  const asked = request.value;
  if (!asked || running.value) return;
  running.value = true;
  refusal.value = null;
  took.value = null;
  launchOpen.value = false;
  const previous = withPrevious.value ? model.value : null;
  const first = await run(asked);
  const compared = previous ? null : otherRequest(asked);
  const second = first instanceof Model && compared ? await run(compared) : null;
  batch(() => {
    running.value = false;
    if (!(first instanceof Model)) refusal.value = first;
    else if (second && !(second instanceof Model)) refusal.value = second;
    else {
      editing.value = working.value;
      editingPtx.value = false;
      const ofLesson = beside.value === null && lesson.value?.versus && !working.value;
      labels.value = previous ? ["this run", "the previous run"] : ofLesson ? labels.value : [];
      open(first, previous ?? second);
      showWrong();
    }
  });
}

/** What is run beside, if anything: as was asked for, else as the lesson has it. */
function otherRequest(asked: LaunchRequest): LaunchRequest | null {
  if (beside.value) return { ...asked, ...beside.value };
  return lesson.value?.versus && !working.value ? changed(asked, lesson.value.versus) : null;
}

function compareWith(device: string | null): void {
  const asked = request.value;
  withPrevious.value = false;
  beside.value = device === null || !asked ? null : { device, schedule: asked.schedule, seed: asked.seed };
}

function change(part: Partial<LaunchRequest>): void {
  if (request.value) request.value = { ...request.value, ...part };
}

export function Launch() {
  const asked = request.value;
  const given = show.value;
  if (!asked || !given || !runs.value || !launchOpen.value) return null;
  const text = (name: keyof LaunchRequest, label: string, hint = "") => (
    <label>
      <span>{label}</span>
      <input value={String(asked[name])} placeholder={hint} spellcheck={false} onInput={(event) => change({ [name]: event.currentTarget.value })} />
    </label>
  );
  return (
    <form
      class="launch"
      aria-label="Launch"
      onSubmit={(event) => {
        event.preventDefault();
        void runNow();
      }}
    >
      <div class="fields">
        <label>
          <span>Kernel</span>
          <input list="kernels" value={asked.kernel} placeholder="the only kernel" spellcheck={false} onInput={(event) => change({ kernel: event.currentTarget.value })} />
          <datalist id="kernels">
            {kernelsOf(asked.source).map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
        {text("grid", "Grid", "16x8")}
        {text("block", "Block", "16x8")}
        <label>
          <span>Shared bytes</span>
          <input type="number" min="0" value={asked.shared} onInput={(event) => change({ shared: Number(event.currentTarget.value) })} />
        </label>
        <Device label="Device" value={asked.device} onChange={(device) => change({ device })} />
        <Schedule label="Schedule" value={asked.schedule} onChange={(schedule) => change({ schedule })} />
        <label>
          <span>Seed</span>
          <input type="number" value={asked.seed} onInput={(event) => change({ seed: Number(event.currentTarget.value) })} />
        </label>
        <label>
          <span>Max. instructions</span>
          <input
            type="number"
            min="1"
            value={asked.max_instructions ?? ""}
            placeholder="no limit"
            onInput={(event) => change({ max_instructions: event.currentTarget.value ? Number(event.currentTarget.value) : null })}
          />
        </label>
      </div>
      <label class="args">
        <span>Arguments, one per line</span>
        <textarea
          rows={Math.max(2, asked.args.length)}
          spellcheck={false}
          value={asked.args.join("\n")}
          onInput={(event) => change({ args: event.currentTarget.value.split("\n").filter((line) => line.trim()) })}
        />
      </label>
      <fieldset>
        {!ownMachine.value && (
          <>
            <label class="check">
              <input type="checkbox" checked={asked.timed} onChange={(event) => change({ timed: event.currentTarget.checked })} />
              <span>Model the time</span>
            </label>
            <label class="check">
              <input type="checkbox" checked={asked.sanitize.length > 0} onChange={(event) => change({ sanitize: event.currentTarget.checked ? TOOLS : [] })} />
              <span>Check for races</span>
            </label>
          </>
        )}
        {asked.timed && (
          <label>
            <span>of SM</span>
            <input type="number" min="0" value={asked.sm} onInput={(event) => change({ sm: Number(event.currentTarget.value) })} />
          </label>
        )}
        <label class="check">
          <input type="checkbox" checked={beside.value !== null} onChange={(event) => compareWith(event.currentTarget.checked ? asked.device : null)} />
          <span>Compare with another device or schedule</span>
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={withPrevious.value}
            onChange={(event) => {
              beside.value = null;
              withPrevious.value = event.currentTarget.checked;
            }}
          />
          <span>Compare with the run that is shown</span>
        </label>
        {beside.value && (
          <>
            <Device label="Device" value={beside.value.device} onChange={(device) => (beside.value = { ...beside.value!, device })} />
            <Schedule label="Schedule" value={beside.value.schedule} onChange={(schedule) => (beside.value = { ...beside.value!, schedule })} />
          </>
        )}
      </fieldset>
      <div class="do">
        <button type="submit" class="primary" disabled={running.value}>
          {running.value ? "Running …" : "Run"} <kbd>Ctrl ⏎</kbd>
        </button>
        <button type="button" onClick={() => (launchOpen.value = false)}>
          Close
        </button>
      </div>
    </form>
  );
}

/** The kernels of a source, as far as its text shows: of CUDA C++, OpenCL C and PTX. */
export function kernelsOf(source: string): string[] {
  const found = source.matchAll(/(?:__global__|\b(?:__)?kernel\b)[^;{()]*?(?:__launch_bounds__\s*\([^)]*\)[^;{()]*?)?(\w+)\s*\(|\.entry\s+([\w$]+)/g);
  return [...new Set([...found].map((one) => one[1] ?? one[2]!))];
}

function Device({ label, value, onChange }: { label: string; value: string; onChange: (name: string) => void }) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {show.value!.devices.map((device) => (
          <option key={device.name} value={device.name}>
            {device.cc} · {device.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Schedule({ label, value, onChange }: { label: string; value: string; onChange: (name: string) => void }) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {show.value!.schedules.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

/** Shows what went wrong where it can be seen. */
export function Trouble() {
  const wrong = refusal.value;
  if (wrong) {
    return (
      <div class="trouble" role="alert">
        <button aria-label="Close" onClick={() => (refusal.value = null)}>
          ✕
        </button>
        <pre>{wrong.message}</pre>
      </div>
    );
  }
  if (running.value) return <div class="trouble calm" role="status">{waitingFor.value || "Running the kernel …"}</div>;
  const error = model.value?.trace.error;
  if (error && !other.value) {
    const [first, ...rest] = error.split("\n");
    return (
      <section aria-label="Error">
        <details class="trouble ended" open={!lesson.value || working.value}>
          <summary>✕ {first}</summary>
          {rest.length > 0 && (
            <pre tabIndex={0} role="note" aria-label="More about the error">
              {rest.join("\n")}
            </pre>
          )}
        </details>
      </section>
    );
  }
  return null;
}
