// The panel of an explorable: its text, its controls, and what was counted for each of their values.

import type { Control, Explorable } from "../schema.ts";
import { choose, chosen, runOf, shownRun } from "../explore.ts";
import { show } from "../state.ts";
import { Prose } from "./Prose.tsx";

export function ExplorablePanel() {
  const told = show.value!.explorable;
  if (!told || chosen.value.length === 0) return null;
  return (
    <aside class="lesson explorable" aria-label="Explorable">
      <header>
        <h2>{told.title}</h2>
      </header>
      {told.controls.map((control, index) => (control.buttons ? <Buttons key={control.name} control={control} index={index} /> : <Slider key={control.name} control={control} index={index} />))}
      <p class="counted" aria-live="polite">
        {told.figures[shownRun.value]}
      </p>
      <Curve told={told} />
      {told.text.map((part) => (
        <p key={part} class="told">
          <Prose text={part} />
        </p>
      ))}
    </aside>
  );
}

function Slider({ control, index }: { control: Control; index: number }) {
  const now = chosen.value[index]!;
  return (
    <label class="control">
      <span>
        {control.label}: <b>{shape(control.values[now]!)}</b>
      </span>
      <input type="range" min={0} max={control.values.length - 1} step={1} value={now} aria-label={control.label} aria-valuetext={control.values[now]} onInput={(event) => void choose(index, Number(event.currentTarget.value))} />
    </label>
  );
}

function Buttons({ control, index }: { control: Control; index: number }) {
  return (
    <div class="control" role="group" aria-label={control.label}>
      <span>{control.label}</span>
      <span class="choices">
        {control.values.map((value, number) => (
          <button key={value} aria-pressed={chosen.value[index] === number} onClick={() => void choose(index, number)}>
            {value}
          </button>
        ))}
      </span>
    </div>
  );
}

/** "32,8" as "32 × 8". */
function shape(value: string): string {
  return value.replaceAll(",", " × ");
}

const [WIDE, HIGH] = [320, 56];

/** A bar for each value of the slider, with the other controls as they are. */
function Curve({ told }: { told: Explorable }) {
  const index = Math.max(0, told.controls.findIndex((control) => !control.buttons));
  const control = told.controls[index]!;
  const heights = control.values.map((_, number) => told.curve[runOf(chosen.value.map((now, other) => (other === index ? number : now)))]!);
  const most = Math.max(...told.curve);
  const step = WIDE / heights.length;
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${WIDE} ${HIGH + 26}`} role="img" aria-label={`${told.curve_label} by ${control.label}: ${heights.map((height, number) => `${shape(control.values[number]!)}: ${height}`).join(", ")}`}>
        {heights.map((height, number) => (
          <g key={number} class={number === chosen.value[index] ? "on" : ""} onClick={() => void choose(index, number)}>
            <rect class="reach" x={number * step} y={0} width={step} height={HIGH + 26} />
            <rect class="column" x={number * step + 2} y={12 + HIGH * (1 - height / most)} width={step - 4} height={Math.max(1, (HIGH * height) / most)} />
            <text x={(number + 0.5) * step} y={9 + HIGH * (1 - height / most)}>
              {height.toLocaleString()}
            </text>
            <text x={(number + 0.5) * step} y={HIGH + 23}>
              {shape(control.values[number]!).replaceAll(" ", "")}
            </text>
          </g>
        ))}
      </svg>
      <figcaption>
        {told.curve_label} by {control.label}
      </figcaption>
    </figure>
  );
}
