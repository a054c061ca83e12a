// The 32 lanes of the chosen warp: what each does, and the value of a register in it.

import { count, LANES, lanesOf, named } from "../bits.ts";
import { tip } from "../help.ts";
import type { Model, Moment } from "../model.ts";
import { register, shownFinding } from "../state.ts";
import { short, shown } from "../values.ts";
import { LANE_NAMES, LANE_STATES, laneState, Mark } from "./lanes.tsx";
import { Calls } from "./Calls.tsx";
import { Tree } from "./Tree.tsx";

export function Warp({ model, moment, warp, title }: { model: Model; moment: Moment; warp: number; title?: string }) {
  const chosen = chosenRegister(model, moment);
  const values = chosen === null ? null : model.register(warp, chosen, moment.step, true);
  const issuing = moment.status === "executing" || moment.status === "at a barrier";
  const branching = issuing && sendsElsewhere(model, moment);
  const names = { ...(branching ? waysOf(model, moment) : LANE_NAMES), ...(returned(model, moment) ? { gathering: "returned" } : {}) };
  const states = Array.from({ length: LANES }, (_, lane) => {
    const state = laneState(moment.state, moment.executing, lane, issuing, branching);
    return moment.status === "ended" && state !== "absent" ? "exited" : state;
  });
  const present = LANE_STATES.filter((state) => states.includes(state));
  const own = model.trace.warps[warp];
  const involved = (shownFinding.value?.parties ?? []).filter((one) => one.block === own?.block && one.warp === own.warp).map((one) => one.lane);
  const faulted = faultedLane(model, moment.step, warp);
  return (
    <section class="view warp" aria-label={title ?? "Warp"}>
      <header>
        <h2>{title ?? "Warp"}</h2>
        <span class="where">{model.warpName(warp)}</span>
        <span class={`status st-${moment.status.replace(/\W/g, "-")}`}>{moment.status}</span>
        <RegisterPicker model={model} moment={moment} chosen={chosen} warp={warp} />
      </header>
      <Instruction model={model} moment={moment} />
      <div class="lanes" role="list" {...tip("halves")} aria-label={`Lanes. Active: ${named(moment.state.active)}.`}>
        {states.map((state, lane) => (
          <div key={lane} role="listitem" class={`lane is-${state}${involved.includes(lane) || lane === faulted ? " involved" : ""}`} tabIndex={-1} {...tip(state, `Lane ${lane}${involved.includes(lane) ? ", in the finding" : ""}${lane === faulted ? ", which faulted" : ""}${values && state !== "absent" ? `: ${valueText(model, values[lane]!, model.trace.registers[chosen!]!.type)}` : ""}.`)}>
            <i>{lane}</i>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <Mark state={state} />
            </svg>
            <b>{values && state !== "absent" ? short(valueIn(model, values[lane]!, model.trace.registers[chosen!]!.type), title ? 4 : fitting()) : ""}</b>
          </div>
        ))}
      </div>
      <ul class="legend">
        {present.map((state) => (
          <li key={state} {...tip(state)}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <Mark state={state} />
            </svg>
            {names[state]} <b>{states.filter((s) => s === state).length}</b>
          </li>
        ))}
        {involved.length > 0 && (
          <li {...tip("involved")}>
            <i class="involved" /> in the finding <b>{involved.length}</b>
          </li>
        )}
        {faulted >= 0 && (
          <li {...tip("fault")}>
            <i class="involved" /> faulted: lane <b>{faulted}</b>
          </li>
        )}
      </ul>
      <Calls model={model} moment={moment} warp={warp} />
      <Variables model={model} moment={moment} warp={warp} />
      <Tree model={model} moment={moment} />
    </section>
  );
}

/** How many characters of a value fit below a lane: beside the code there is less room. */
function fitting(): number {
  return innerWidth > 900 && innerWidth < 1500 ? 5 : 6;
}

/** The lane whose access ended the launch at a step of a warp; -1 where none did. */
function faultedLane(model: Model, step: number, warp: number): number {
  const fault = step >= 0 ? model.faultAt(step) : null;
  const own = model.trace.warps[warp];
  const here = fault && own?.block === fault.block && own.warp === Math.floor(fault.thread / LANES);
  return here ? fault.thread % LANES : -1;
}

/** Whether the step is an instruction after which lanes go on in different places. */
function sendsElsewhere(model: Model, moment: Moment): boolean {
  if (moment.step < 0) return false;
  const code = model.code(moment.step);
  return code.text.startsWith("brx") || (code.guarded && (code.is_branch || /^@!?%\w+\s+(ret|exit)\b/.test(code.text)));
}

/** Whether all lanes that wait to reconverge have returned: compilers merge a kernel's returns into
 * one, at which they wait for the others. */
function returned(model: Model, moment: Moment): boolean {
  const waited = moment.state.stack.filter((one) => one.arrived !== 0);
  return waited.length > 0 && waited.every((one) => model.onlyEnds(one.block));
}

/** What lanes do at a branch, with the lines that they go to. */
function waysOf(model: Model, moment: Moment): typeof LANE_NAMES {
  const { on, to } = model.ways(model.instruction[moment.step]!);
  return { ...LANE_NAMES, goes_on: `continues at ${on}`, jumps: `jumps to ${to}` };
}

/** The variables of the source whose values are in registers; a press shows one in the lanes. */
function Variables({ model, moment, warp }: { model: Model; moment: Moment; warp: number }) {
  if (!model.trace.warps[warp]?.registers || moment.step < 0) return null;
  const named = model.trace.registers.flatMap((one, index) => (one.variable && one.type !== "pred" ? [[one.variable, index] as const] : []));
  const latest = new Map<string, number>();
  for (const [name, index] of named) {
    const written = model.lastWrite(warp, index, moment.step);
    const before = latest.has(name) ? model.lastWrite(warp, latest.get(name)!, moment.step) : -1;
    if (written > before) latest.set(name, index);
  }
  if (latest.size === 0) return null;
  return (
    <div class="variables" role="group" aria-label="Variables">
      {[...latest].map(([name, index]) => {
        const type = model.trace.registers[index]!.type;
        const all = model.register(warp, index, moment.step, true) ?? [];
        const lanes = lanesOf(moment.state.active || model.trace.warps[warp]!.existing);
        const values = lanes.map((lane) => valueIn(model, all[lane]!, type, name));
        return (
          <button key={name} translate={false} aria-pressed={register.value === index} onClick={() => (register.value = register.value === index ? null : index)}>
            {name} <b>{summed(values)}</b>
          </button>
        );
      })}
    </div>
  );
}

/** The values of the active lanes in short: one where they are equal. */
function summed(values: readonly string[]): string {
  const found = new Set(values);
  if (found.size === 1) return values[0]!;
  return `${values[0]} … ${values.at(-1)}`;
}

/** What a lane holds; an address by how far it is into its allocation. */
function valueIn(model: Model, bits: number | bigint, type: string, name = ""): string {
  const inside = type.endsWith("64") && !type.startsWith("f") ? model.allocation(Number(bits)) : null;
  if (inside && name === inside.name && Number(bits) === inside.address) return "→";
  return inside ? `${name ? inside.name : ""}+${Number(bits) - inside.address}` : shown(bits, type);
}

/** The same in full. */
function valueText(model: Model, bits: number | bigint, type: string): string {
  const inside = type.endsWith("64") && !type.startsWith("f") ? model.allocation(Number(bits)) : null;
  return inside ? model.where("global", Number(bits)) : shown(bits, type);
}

function Instruction({ model, moment }: { model: Model; moment: Moment }) {
  if (moment.step < 0) return <p class="now">not started yet</p>;
  const code = model.code(moment.step);
  const active = moment.status === "ended" ? 0 : count(moment.state.active);
  return (
    <p class="now" aria-live="polite">
      <code>{code.text}</code>
      <span>
        {model.place(model.instruction[moment.step]!)} · {active} of {LANES} lanes active
        {/^(selp|slct)\b/.test(code.text) && ", each lane selects one of two computed values without a branch"}
        {spinAfter(model, moment.step)}
        {code.guarded && !sendsElsewhere(model, moment) && moment.executing !== moment.state.active ? `, predicate true in ${count(moment.executing)} of them` : ""}
      </span>
    </p>
  );
}

/** Words on the iterations that are left out after a step. */
function spinAfter(model: Model, step: number): string {
  const spin = model.spins.at(step + 1) ?? model.spins.at(step);
  if (!spin) return "";
  return `, then ${spin.iterations.toLocaleString()} more iterations in which nothing changes (${(spin.stop - spin.first).toLocaleString()} steps, not shown)`;
}

/** The register that is shown: the one asked for, else what the instruction writes or reads. */
function chosenRegister(model: Model, moment: Moment): number | null {
  if (register.value !== null && register.value < model.trace.registers.length) return register.value;
  if (moment.step < 0) return null;
  const code = model.code(moment.step);
  return code.writes[0] ?? code.reads[0] ?? null;
}

function RegisterPicker(props: { model: Model; moment: Moment; chosen: number | null; warp: number }) {
  const { model, chosen } = props;
  if (!model.trace.warps[props.warp]?.registers) return <span class="none">registers not recorded</span>;
  return (
    <label class="pick">
      <span>register</span>
      <select
        aria-label={`Register of ${model.trace.device.name}`}
        value={register.value === null ? "" : String(register.value)}
        onChange={(event) => (register.value = event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      >
        <option value="">{chosen === null ? "as used" : `as used: ${model.registerName(chosen)}`}</option>
        {model.trace.registers.map((one, index) => (
          <option key={one.name} translate={false} value={String(index)}>
            {one.variable ? `${one.variable}: ` : ""}
            {one.name} ({one.type})
          </option>
        ))}
      </select>
    </label>
  );
}
