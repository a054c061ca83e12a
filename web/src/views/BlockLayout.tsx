// A block's threads where the program has them, by threadIdx: every other warp is darker, and
// hatched halves are the second half-warps.

import { tip } from "../help.ts";
import type { Model } from "../model.ts";
import { choose, warp as chosen } from "../state.ts";

/** Blocks of more threads in a row have no room for the numbers of warps. */
const LABELLED = 32;

export function BlockLayout({ model }: { model: Model }) {
  const { trace } = model;
  const [wide, high, deep] = trace.launch.block;
  const size = trace.device.warp_size;
  const threads = wide * high * deep;
  const warps = Math.ceil(threads / size);
  const empty = warps * size - threads;
  const shown = trace.warps[chosen.value];
  const planes = Array.from({ length: deep }, (_, z) => z);
  const numbers = Array.from({ length: wide * high }, (_, number) => number);
  return (
    <section class="layout" data-part="layout">
      <h3 {...tip("layout")} tabIndex={0}>
        {[wide, high, deep].slice(0, deep > 1 ? 3 : high > 1 ? 2 : 1).join(" × ")} threads{" "}
        <em>
          {warps} {warps === 1 ? "warp" : "warps"} of {size}
          {empty > 0 && `; ${empty} lanes of the last warp have no thread`}
        </em>
      </h3>
      {planes.map((z) => (
        <div key={z} class="threads" style={{ gridTemplateColumns: `repeat(${wide}, minmax(0, 1fr))`, maxWidth: `${wide * 17}px` }}>
          {numbers.map((at) => {
            const number = at + wide * high * z;
            const [warp, lane] = [Math.floor(number / size), number % size];
            const place = `threadIdx (${at % wide}, ${Math.floor(at / wide)}, ${z})`;
            return (
              <i
                key={number}
                class={`${warp % 2 ? "odd" : ""}${lane >= size / 2 ? " second" : ""}${shown?.warp === warp ? " chosen" : ""}`}
                data-tip={`${place}: thread ${number} of the block.\nWarp ${warp}, lane ${lane}; ${lane < size / 2 ? "first" : "second"} half-warp, quarter-warp ${Math.floor((4 * lane) / size)}.\n`}
                onClick={() => chooseOf(model, warp)}
              >
                {lane === 0 && wide <= LABELLED ? warp : ""}
              </i>
            );
          })}
        </div>
      ))}
    </section>
  );
}

/** Chooses a warp of the block that is shown, if it was recorded. */
function chooseOf(model: Model, warp: number): void {
  const block = model.trace.warps[chosen.value]?.block;
  const found = model.trace.warps.findIndex((one) => one.block === block && one.warp === warp);
  if (found >= 0) choose(found);
}
