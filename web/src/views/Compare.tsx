// Two runs side by side: the chosen warp of each, at the same event.

import type { Model } from "../model.ts";
import { labels, model, other, otherTime, otherWarp, pane, time, warp } from "../state.ts";
import { Data } from "./Data.tsx";
import { Memory } from "./Memory.tsx";
import { Numbers, useOf } from "./Numbers.tsx";
import { Warp } from "./Warp.tsx";

export function Compare() {
  const [first, second] = [model.value, other.value];
  if (!first || !second) return null;
  return (
    <div class="compare" id="below" role="tabpanel" aria-label="Both runs">
      <Side model={first} warp={warp.value} time={time.value} label={labels.value[0] ?? title(first)} />
      <Side model={second} warp={otherWarp.value} time={otherTime.value} label={labels.value[1] ?? title(second)} />
    </div>
  );
}

function title(model: Model): string {
  const { device, launch } = model.trace;
  return `${device.name} (${device.cc}), ${launch.schedule}${launch.seed ? `, seed ${launch.seed}` : ""}`;
}

function Side(props: { model: Model; warp: number; time: number; label: string }) {
  const { model, warp, time, label } = props;
  const moment = model.moment(warp, time);
  const over = time >= model.count;
  const used = useOf(model, warp, time);
  return (
    <div class="side">
      <Warp model={model} moment={moment} warp={warp} title={label} />
      <p class="fact">
        {model.trace.device.title} · compute capability {model.trace.device.cc} · {model.stepsOf(warp).length.toLocaleString()} steps of this warp ·{" "}
        {Math.round(100 * used.ratio)} % of lanes used
      </p>
      {over && <Outcome model={model} />}
      {pane.value === "numbers" ? (
        <Numbers model={model} warp={warp} time={time} />
      ) : pane.value === "data" ? (
        <Data model={model} warp={warp} time={time} compact />
      ) : (
        <Memory model={model} warp={warp} time={time} compact />
      )}
    </div>
  );
}

/** How a run ended. */
export function Outcome({ model }: { model: Model }) {
  if (!model.trace.error) return <p class="outcome well">✓ The launch ended without an error.</p>;
  return <pre class="outcome ill" tabIndex={0} aria-label="Error">{model.trace.error}</pre>;
}
