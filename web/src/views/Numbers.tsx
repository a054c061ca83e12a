// The report's counters up to the step that is shown, and how well the lanes were used.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { count } from "../bits.ts";
import { tip, type HelpKey } from "../help.ts";
import type { Model } from "../model.ts";
import { goTo } from "../state.ts";

const POINTS = 400;

const TITLES: Record<string, string> = {
  warp_instructions: "Warp instructions",
  thread_instructions: "Thread instructions",
  thread_instructions_predicated_on: "… predicated on",
  branches: "Branches",
  divergent_branches: "Divergent branches",
  reconvergences: "Reconvergences",
  barriers: "Barriers",
};

const SHOWN = ["requests", "sectors", "transactions", "wavefronts", "bank_conflicts", "passes", "bytes_requested", "bytes_moved"];

export function Numbers({ model, warp, time }: { model: Model; warp: number; time: number }) {
  const sums = model.tallies.upTo(Math.min(model.count, time + 1));
  const names = model.tallies.names;
  const basic = names.flatMap((name, i) => (TITLES[name] ? [[TITLES[name], sums[i]!] as const] : []));
  const memory = names.flatMap((name, i) => (TITLES[name] || !sums[i] || !isShown(name) ? [] : [[name, sums[i]!] as const]));
  const used = useOf(model, warp, time);
  return (
    <div class="numbers">
      <div class="big">
        <Figure help="ratio" value={`${Math.round(100 * used.ratio)} %`} text="of its lanes used" />
        <Figure help="slower" value={`${used.slower.toFixed(used.slower < 10 ? 2 : 1)} ×`} text="the instructions of a uniform warp" />
        <ActiveLanes model={model} warp={warp} time={time} />
      </div>
      <table>
        <caption>Counted in the launch, up to this step</caption>
        <tbody>
          {basic.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value.toLocaleString()}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <table data-part="memory">
        <caption>Memory</caption>
        <tbody>
          {memory.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name.replaceAll("_", " ")}</th>
              <td>{value.toLocaleString()}</td>
            </tr>
          ))}
          {memory.length === 0 && (
            <tr>
              <th scope="row">nothing yet</th>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function isShown(name: string): boolean {
  const field = SHOWN.find((one) => name.endsWith(`_${one}`));
  if (!field) return false;
  if (name.startsWith("shared")) return field !== "sectors" && field !== "transactions";
  return field !== "wavefronts" && field !== "bank_conflicts";
}

function Figure({ help, value, text }: { help: HelpKey; value: string; text: string }) {
  return (
    <p class="figure" {...tip(help)} aria-label={`${value} ${text}`} tabIndex={0}>
      <b>{value}</b> {text}
    </p>
  );
}

/** How well a warp's lanes were used up to a step. */
export function useOf(model: Model, warp: number, time: number): { ratio: number; slower: number } {
  const sums = runningLanes(model, warp);
  const until = model.stepsUntil(warp, time);
  const lanes = count(model.trace.warps[warp]!.existing);
  const active = sums[until]!;
  if (until === 0 || active === 0) return { ratio: 1, slower: 1 };
  return { ratio: active / (until * lanes), slower: (until * lanes) / active };
}

const known = new WeakMap<Model, Map<number, Float64Array>>();

/** For each number of steps of a warp, the lanes active in them, summed. */
function runningLanes(model: Model, warp: number): Float64Array {
  let rows = known.get(model);
  if (!rows) known.set(model, (rows = new Map()));
  let sums = rows.get(warp);
  if (!sums) {
    const steps = model.stepsOf(warp);
    sums = new Float64Array(steps.length + 1);
    for (let i = 0; i < steps.length; i++) sums[i + 1] = sums[i]! + count(model.stateOf(steps[i]!).active);
    rows.set(warp, sums);
  }
  return sums;
}

function ActiveLanes({ model, warp, time }: { model: Model; warp: number; time: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const steps = model.stepsOf(warp);
    const sums = runningLanes(model, warp);
    const size = Math.max(1, Math.ceil(steps.length / POINTS));
    const xs: number[] = [];
    const ys: number[] = [];
    for (let at = 0; at < steps.length; at += size) {
      const end = Math.min(steps.length, at + size);
      xs.push(at);
      ys.push((sums[end]! - sums[at]!) / (end - at));
    }
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "10px system-ui", size: 26 };
    plot.current = new uPlot(
      {
        width: Math.max(200, place.current!.clientWidth),
        height: 110,
        padding: [8, 0, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false } },
        scales: { x: { time: false }, y: { range: [0, 32] } },
        axes: [{ ...axis, size: 22 }, { ...axis, splits: () => [0, 8, 16, 24, 32] }],
        series: [{}, { stroke: colour("--active"), fill: colour("--active-soft"), width: 1.5, paths: uPlot.paths.stepped!({ align: 1 }), points: { show: false } }],
      },
      [xs, ys],
      place.current!,
    );
    const go = () => {
      const index = plot.current?.cursor.idx;
      if (index != null) goTo(steps[xs[index]!] ?? 0);
    };
    plot.current.over.addEventListener("click", go);
    return () => plot.current?.destroy();
  }, [model, warp]);
  const at = model.stepsUntil(warp, time) - 1;
  const total = Math.max(1, model.stepsOf(warp).length);
  return (
    <div class="plot" aria-label="Active lanes of this warp, step by step">
      <h3>Active lanes of this warp, step by step</h3>
      <div ref={place}>
        <i class="at" style={{ left: `calc(26px + (100% - 26px) * ${Math.max(0, at) / total})` }} />
      </div>
    </div>
  );
}
