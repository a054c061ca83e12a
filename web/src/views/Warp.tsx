// The 32 lanes of the chosen warp: what each does, and the value of a register in it.

import { count, LANES, named } from "../bits.ts";
import { tip } from "../help.ts";
import type { Model, Moment } from "../model.ts";
import { register } from "../state.ts";
import { short, shown } from "../values.ts";
import { LANE_NAMES, LANE_STATES, laneState, Mark } from "./lanes.tsx";
import { Tree } from "./Tree.tsx";

export function Warp({ model, moment, warp, title }: { model: Model; moment: Moment; warp: number; title?: string }) {
  const chosen = chosenRegister(model, moment);
  const values = chosen === null ? null : model.register(warp, chosen, moment.step, true);
  const issuing = moment.status === "executing" || moment.status === "at a barrier";
  const states = Array.from({ length: LANES }, (_, lane) => laneState(moment.state, moment.executing, lane, issuing));
  const present = LANE_STATES.filter((state) => states.includes(state));
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
          <div key={lane} role="listitem" class={`lane is-${state}`} tabIndex={-1} {...tip(state, `Lane ${lane}${values && state !== "absent" ? `: ${told(model, values[lane]!, model.trace.registers[chosen!]!.type)}` : ""}.`)}>
            <i>{lane}</i>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <Mark state={state} />
            </svg>
            <b>{values && state !== "absent" ? short(valueIn(model, values[lane]!, model.trace.registers[chosen!]!.type), 6) : ""}</b>
          </div>
        ))}
      </div>
      <ul class="legend">
        {present.map((state) => (
          <li key={state} {...tip(state)}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <Mark state={state} />
            </svg>
            {LANE_NAMES[state]} <b>{states.filter((s) => s === state).length}</b>
          </li>
        ))}
      </ul>
      <Tree model={model} moment={moment} />
    </section>
  );
}

/** What a lane holds; an address by how far it is into its allocation. */
function valueIn(model: Model, bits: number | bigint, type: string): string {
  const inside = type.endsWith("64") && !type.startsWith("f") ? model.allocation(Number(bits)) : null;
  return inside ? `+${Number(bits) - inside.address}` : shown(bits, type);
}

/** The same in full. */
function told(model: Model, bits: number | bigint, type: string): string {
  const inside = type.endsWith("64") && !type.startsWith("f") ? model.allocation(Number(bits)) : null;
  return inside ? model.where("global", Number(bits)) : shown(bits, type);
}

function Instruction({ model, moment }: { model: Model; moment: Moment }) {
  if (moment.step < 0) return <p class="now">not started yet</p>;
  const code = model.code(moment.step);
  const active = count(moment.state.active);
  return (
    <p class="now" aria-live="polite">
      <code>{code.text}</code>
      <span>
        {model.place(model.instruction[moment.step]!)} · {active} of {LANES} lanes
        {code.guarded && moment.executing !== 0 && moment.executing !== moment.state.active ? `, guard holds in ${count(moment.executing)}` : ""}
      </span>
    </p>
  );
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
        value={register.value === null ? "" : String(register.value)}
        onChange={(event) => (register.value = event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      >
        <option value="">{chosen === null ? "as used" : `as used: ${model.trace.registers[chosen]!.name}`}</option>
        {model.trace.registers.map((one, index) => (
          <option key={one.name} value={String(index)}>
            {one.name} ({one.type})
          </option>
        ))}
      </select>
    </label>
  );
}
