// How a warp's lanes have diverged: where each part is, and where they will reconverge.

import { count } from "../bits.ts";
import { tip } from "../help.ts";
import type { Model, Moment } from "../model.ts";
import type { ReconvergencePoint, State } from "../schema.ts";
import { Strip } from "./lanes.tsx";

export function Tree({ model, moment }: { model: Model; moment: Moment }) {
  const { state } = moment;
  const independent = model.trace.device.independent;
  const diverged = state.stack.length > 0 || state.splits.length > 0;
  return (
    <div class="tree">
      <h3 {...tip(independent ? "splits" : "stack")} tabIndex={0}>
        {independent ? "Splits" : "Reconvergence stack"}
        {!diverged && <em>no divergence: all running lanes execute together</em>}
      </h3>
      {diverged && (
        <ul role="tree" aria-label="Diverged lanes">
          <Nested model={model} moment={moment} stack={state.stack} />
          {[...pendingMasks(state)].map(([block, masks]) => (
            <li key={`s${block}`} role="treeitem">
              <Row
                mask={masks.reduce((all, mask) => all | mask, 0)}
                kind="wait"
                label="pending"
                text={`${masks.length > 1 ? `in ${masks.length} splits, ` : ""}will continue at ${model.blockPlace(block)}`}
              />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The splits that are pending, by the basic block at which they go on. */
function pendingMasks(state: State): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const [mask, block] of state.splits) found.set(block, [...(found.get(block) ?? []), mask]);
  return found;
}

function Nested({ model, moment, stack }: { model: Model; moment: Moment; stack: readonly ReconvergencePoint[] }) {
  const [outer, ...inner] = stack;
  if (!outer) {
    if (moment.state.active === 0) return null;
    const here = moment.step < 0 ? "the start" : model.place(model.instruction[moment.step]!);
    return (
      <li role="treeitem">
        <Row mask={moment.state.active} kind="active" label="running" text={`at ${here}`} />
      </li>
    );
  }
  return (
    <li role="treeitem" aria-expanded="true">
      <Row mask={outer.expected} kind="reconverge" label="reconverge" text={`before ${model.blockPlace(outer.block)}`} />
      <ul role="group">
        {outer.arrived !== 0 && (
          <li role="treeitem">
            <Row mask={outer.arrived} kind="wait" label="arrived" text="" />
          </li>
        )}
        <Nested model={model} moment={moment} stack={inner} />
        {outer.other_side !== 0 && (
          <li role="treeitem">
            <Row mask={outer.other_side} kind="other" label="next" text={`the other side, from ${model.blockPlace(outer.other_block)}`} />
          </li>
        )}
      </ul>
    </li>
  );
}

function Row({ mask, kind, label, text }: { mask: number; kind: string; label: string; text: string }) {
  return (
    <div class={`row k-${kind}`}>
      <Strip mask={mask} kind={kind} />
      <b>{count(mask)}</b>
      <span>
        <em>{label}</em> {text}
      </span>
    </div>
  );
}
