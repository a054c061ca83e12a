// The functions that the lanes of a warp are in: those inlined around the instruction, and the calls
// that have not returned.

import { lanesOf, named } from "../bits.ts";
import { tip } from "../help.ts";
import type { Model, Moment } from "../model.ts";
import type { CallFrame } from "../schema.ts";

export function Calls({ model, moment, warp }: { model: Model; moment: Moment; warp: number }) {
  if (moment.step < 0) return null;
  const groups = byStack(model, moment, warp);
  if (groups.every(({ stack }) => stack.length < 2)) return null;
  return (
    <div class="calls" role="group" aria-label="Calls">
      <h3 {...tip("calls")} tabIndex={0}>
        Calls
      </h3>
      <ul>
        {groups.map(({ mask, stack }) => (
          <li key={mask}>
            {groups.length > 1 && <span class="where">{named(mask)}: </span>}
            {folded(stack).map(({ frame, times }, depth) => (
              <span key={depth}>
                {depth > 0 && <i aria-label="called by"> ← </i>}
                <b>{frame.function}</b>
                {frame.line > 0 && ` line ${frame.line}`}
                {times > 1 && ` ×${times}`}
              </span>
            ))}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The lanes of a warp that have not exited, by what they are in. */
function byStack(model: Model, moment: Moment, warp: number): { mask: number; stack: CallFrame[] }[] {
  const groups = new Map<string, { mask: number; stack: CallFrame[] }>();
  const { absent, exited } = moment.state.off;
  for (const lane of lanesOf(~(absent | exited) >>> 0)) {
    const stack = model.callStack(warp, lane, moment.step);
    const key = JSON.stringify(stack);
    const group = groups.get(key) ?? { mask: 0, stack };
    groups.set(key, { mask: (group.mask | (1 << lane)) >>> 0, stack });
  }
  return [...groups.values()].sort((a, b) => Number((b.mask & moment.state.active) !== 0) - Number((a.mask & moment.state.active) !== 0));
}

/** The frames of a stack, equal ones that follow each other (of recursion) as one. */
function folded(stack: readonly CallFrame[]): { frame: CallFrame; times: number }[] {
  const groups: { frame: CallFrame; times: number }[] = [];
  for (const frame of stack) {
    const last = groups.at(-1);
    if (last?.frame.function === frame.function && last.frame.line === frame.line) last.times++;
    else groups.push({ frame, times: 1 });
  }
  return groups;
}
