// The blocks of the grid, the SMs and the warps on them, at the moment that is shown.

import { useMemo } from "preact/hooks";
import { tip } from "../help.ts";
import type { Model } from "../model.ts";
import type { BlockResidency, ResidentKernel } from "../schema.ts";
import { BlockLayout } from "./BlockLayout.tsx";
import { GLYPHS } from "./glyphs.ts";
import { InFlight } from "./InFlight.tsx";
import { Multiprocessor } from "./Multiprocessor.tsx";
import { Roofline } from "./Roofline.tsx";
import { choose, warp as chosen } from "../state.ts";

type BlockStatus = "waiting" | "resident" | "done" | "not recorded";

const MOST_SHOWN = 600;

export function Machine({ model, time }: { model: Model; time: number }) {
  const { trace } = model;
  const [gx, gy, gz] = trace.launch.grid;
  const moments = trace.warps.map((_, number) => model.moment(number, time));
  const statuses = moments.map((one) => one.status);
  const blocks = statusOfBlocks(trace.residency, time, gx * gy * gz);
  const resident = trace.residency.filter((one) => blocks[one.block] === "resident");
  // Up to 1,024 cells, which do not change from step to step.
  const layout = useMemo(() => <BlockLayout model={model} />, [model]);
  const own = trace.residency.find((one) => one.block === trace.warps[chosen.value]?.block);
  return (
    <div class="machine">
      {own && trace.device.multiprocessor && (
        <Multiprocessor model={model} sizes={trace.device.multiprocessor} sm={own.sm} resident={resident.filter((one) => one.sm === own.sm)} beside={trace.beside.filter((one) => one.sm === own.sm)} moments={moments} />
      )}
      <div class="blocks">
        <h3 {...tip("block")} tabIndex={0}>
          Blocks
          <em>
            {counted(blocks)}
          </em>
        </h3>
        <div class="grid">
          {blocks.slice(0, MOST_SHOWN).map((status, block) => (
            <i key={block} class={`b-${status.replace(" ", "-")}`} data-tip={`Block ${block}: ${status}.\n`} />
          ))}
          {blocks.length > MOST_SHOWN && <em>and {blocks.length - MOST_SHOWN} more</em>}
        </div>
        <Left model={model} />
      </div>
      <div class="sms">
        <h3 {...tip("sm")} tabIndex={0}>
          SMs <em>with a resident block (the device has {trace.device.sms} SMs)</em>
        </h3>
        <div class="cards">
          {bySm(resident, trace.beside).map(([sm, inside]) => (
            <div key={sm} class="sm">
              <h4>SM {sm}</h4>
              <Others beside={trace.beside.filter((one) => one.sm === sm)} />
              {inside.map((block) => (
                <div key={block} class="on-sm">
                  <span>block {block}</span>
                  {trace.warps.map((one, number) =>
                    one.block !== block ? null : (
                      <button
                        key={number}
                        class={`w st-${statuses[number]!.replace(/\W/g, "-")}${number === chosen.value ? " chosen" : ""}`}
                        onClick={() => choose(number)}
                        aria-label={`warp ${one.warp} of block ${block}: ${statuses[number]}`}
                        data-tip={`Warp ${one.warp} of block ${block}: ${statuses[number]}.\n`}
                      >
                        {GLYPHS[statuses[number]!]}
                      </button>
                    ),
                  )}
                </div>
              ))}
            </div>
          ))}
          {resident.length + trace.beside.length === 0 && <p class="empty">No block is resident.</p>}
        </div>
      </div>
      {layout}
      {model.asynchronous && <InFlight model={model} made={model.asynchronous} block={trace.warps[chosen.value]!.block} time={time} />}
      <Occupancy model={model} />
      {trace.modelled?.roofs ? <Roofline roofs={trace.modelled.roofs} /> : <p class="note roofline">To show a roofline here, model the time (press R and choose “Model the time”, or use --time).</p>}
    </div>
  );
}

function statusOfBlocks(residency: readonly BlockResidency[], time: number, count: number): BlockStatus[] {
  const found = Array<BlockStatus>(count).fill("not recorded");
  for (const one of residency) found[one.block] = time < one.since ? "waiting" : time < one.until ? "resident" : "done";
  return found;
}

/** How many blocks wait, are resident and are done; and those of which nothing was recorded. */
function counted(blocks: readonly BlockStatus[]): string {
  const kinds: BlockStatus[] = ["waiting", "resident", "done", "not recorded"];
  return kinds
    .map((kind) => [kind, blocks.filter((block) => block === kind).length] as const)
    .filter(([kind, number]) => kind !== "not recorded" || number > 0)
    .map(([kind, number]) => `${number} ${kind}`)
    .join(" · ");
}

/** Blocks of other kernels on an SM, which wait for memory while the launch runs. */
function Others({ beside }: { beside: readonly ResidentKernel[] }) {
  return beside.map((one) => (
    <div key={one.kernel} class="on-sm">
      <span>
        {one.blocks} {one.blocks === 1 ? "block" : "blocks"} of <b translate={false}>{one.kernel}</b>, waiting
      </span>
    </div>
  ));
}

/** The resident blocks of each SM, in the order of its slots; SMs with other kernels alone, too. */
function bySm(resident: readonly BlockResidency[], beside: readonly ResidentKernel[]): [number, number[]][] {
  const found = new Map<number, number[]>(beside.map((one) => [one.sm, []]));
  const bySlot = [...resident].sort((a, b) => a.slot - b.slot);
  for (const one of bySlot) found.set(one.sm, [...(found.get(one.sm) ?? []), one.block]);
  return [...found].sort((a, b) => a[0] - b[0]).slice(0, 48);
}

function Left({ model }: { model: Model }) {
  const { warps, steps } = model.trace.left_out;
  if (!warps && !steps) return null;
  return (
    <p class="note">
      Not recorded: {warps ? `${warps.toLocaleString()} more warps` : ""}
      {warps && steps ? ", " : ""}
      {steps ? `${steps.toLocaleString()} steps` : ""} (see --trace-warps and --trace-steps).
    </p>
  );
}

function Occupancy({ model }: { model: Model }) {
  const found = model.trace.occupancy;
  const share = found.active_warps / found.max_warps;
  const allocated = found.warp_registers / model.trace.device.warp_size;
  return (
    <div class="occupancy" data-part="occupancy" {...tip("occupancy")} tabIndex={0}>
      <h3>
        Occupancy <em>modelled</em>
      </h3>
      <div class="bar">
        <i style={{ width: `${100 * share}%` }} />
      </div>
      <p>
        <b>{Math.round(100 * share)} %</b> {found.active_warps} of {found.max_warps} warps, {found.active_blocks} blocks per SM; limited by{" "}
        <b>{found.limiters.join(" and ")}</b>. {found.registers} registers per thread
        {allocated > found.registers ? ` (${allocated} allocated)` : ""}
        {found.shared_bytes ? `, ${found.shared_bytes.toLocaleString()} bytes of shared memory per block` : ""}.
      </p>
    </div>
  );
}
