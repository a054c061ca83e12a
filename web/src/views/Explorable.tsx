// The panel of an explorable: its text, its controls, and what was counted for each of their values.

import type { Control, Explorable, ValueRange } from "../schema.ts";
import { choose, chosen, curveOf, gone, knownValues, live, refused, shown } from "../explore.ts";
import { show } from "../state.ts";
import { Prose } from "./Prose.tsx";

export function ExplorablePanel() {
  const told = show.value!.explorable;
  if (!told || !shown.value) return null;
  const late = shown.value.values.join() !== chosen.value.join();
  return (
    <aside class="lesson explorable" aria-label="Explorable">
      <header>
        <h2>{told.title}</h2>
      </header>
      {told.controls.map((control, index) => (
        <Choice key={control.name} control={control} index={index} />
      ))}
      <p class={`counted ${late ? "late" : ""}`} aria-live="polite">
        {refused.value ? "" : shown.value.figure}
      </p>
      {told.live && <Origin id={told.id} />}
      <Curve told={told} />
      {told.text.map((part, index) => (
        <p key={part} class="told">
          <Prose text={part} before={told.text.slice(0, index)} />
        </p>
      ))}
    </aside>
  );
}

/** Where the launch that is shown is from, or why there is none. */
function Origin({ id }: { id: string }) {
  if (refused.value) {
    return (
      <p class="origin refused" role="status">
        ✕ {refused.value}
      </p>
    );
  }
  if (gone.value) {
    return (
      <p class="origin refused" role="status">
        ✕ The server does not answer. You can still choose the recorded values; for all values, start <code>warploom learn {id}</code> again.
      </p>
    );
  }
  return <p class="origin">{shown.value!.live ? "Run on the server for this value." : "Recorded beforehand. For other values, the kernel runs on the server."}</p>;
}

function Choice({ control, index }: { control: Control; index: number }) {
  if (control.buttons) return <Buttons control={control} index={index} />;
  if (!live.value || !control.ranges.length) return <RecordedSlider control={control} index={index} />;
  return (
    <>
      {control.ranges.map((range, part) => (
        <RangeSlider key={part} control={control} index={index} range={range} part={part} />
      ))}
    </>
  );
}

/** A slider over the recorded values. */
function RecordedSlider({ control, index }: { control: Control; index: number }) {
  const now = Math.max(0, control.values.indexOf(chosen.value[index]!));
  return (
    <label class="control">
      <span>
        {control.label}: <b>{shape(control.values[now]!)}</b>
      </span>
      <input type="range" min={0} max={control.values.length - 1} step={1} value={now} aria-label={control.label} aria-valuetext={control.values[now]} onInput={(event) => void choose(index, control.values[Number(event.currentTarget.value)]!)} />
    </label>
  );
}

/** A slider over a range, for a number of a value. */
function RangeSlider({ control, index, range, part }: { control: Control; index: number; range: ValueRange; part: number }) {
  const numbers = chosen.value[index]!.split(",");
  const label = range.label || control.label;
  const slide = (number: string) => void choose(index, numbers.map((one, other) => (other === part ? number : one)).join(","));
  return (
    <label class="control">
      <span>
        {label}: <b>{numbers[part]}</b>
      </span>
      <input type="range" min={range.least} max={range.most} step={range.step} value={numbers[part]} aria-label={label} onInput={(event) => slide(event.currentTarget.value)} />
    </label>
  );
}

function Buttons({ control, index }: { control: Control; index: number }) {
  return (
    <div class="control" role="group" aria-label={control.label}>
      <span>{control.label}</span>
      <span class="choices">
        {control.values.map((value) => (
          <button key={value} aria-pressed={chosen.value[index] === value} onClick={() => void choose(index, value)}>
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

/** Columns that are wide enough for a text below each of them. */
const LABELLED = 13;

/** A bar for each value of the slider whose launch is there, with the other controls as they are. */
function Curve({ told }: { told: Explorable }) {
  const index = Math.max(0, told.controls.findIndex((control) => !control.buttons));
  const control = told.controls[index]!;
  const heights = knownValues(index).map((value) => [value, curveOf(chosen.value.map((now, other) => (other === index ? value : now)))!] as const);
  const most = Math.max(...told.curve, ...heights.map(([, height]) => height));
  const step = WIDE / heights.length;
  const labelled = (value: string) => heights.length <= LABELLED || value === chosen.value[index];
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${WIDE} ${HIGH + 26}`} role="img" aria-label={`${told.curve_label} by ${control.label}: ${heights.map(([value, height]) => `${shape(value)}: ${height}`).join(", ")}`}>
        {heights.map(([value, height], number) => (
          <g key={value} class={value === chosen.value[index] ? "on" : ""} onClick={() => void choose(index, value)}>
            <rect class="reach" x={number * step} y={0} width={step} height={HIGH + 26} />
            <rect class="column" x={number * step + Math.min(2, step / 8)} y={12 + HIGH * (1 - height / most)} width={step - Math.min(4, step / 4)} height={Math.max(1, (HIGH * height) / most)} />
            {labelled(value) && (
              <>
                <text x={inside((number + 0.5) * step)} y={9 + HIGH * (1 - height / most)}>
                  {height.toLocaleString()}
                </text>
                <text x={inside((number + 0.5) * step)} y={HIGH + 23}>
                  {shape(value).replaceAll(" ", "")}
                </text>
              </>
            )}
          </g>
        ))}
      </svg>
      <figcaption>
        {told.curve_label} by {control.label}
      </figcaption>
    </figure>
  );
}

/** The middle of a text, so that it is not cut off at either end. */
function inside(middle: number): number {
  return Math.max(14, Math.min(WIDE - 14, middle));
}
