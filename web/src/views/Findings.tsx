// What sanitizers found in the launch: the threads involved, their accesses, and the order that is
// missing.

import type { Model } from "../model.ts";
import type { Finding, Party } from "../schema.ts";
import { finding, model, openFinding, other, time } from "../state.ts";

export function Findings() {
  const shown = model.value;
  const found = shown?.trace.findings ?? [];
  if (!shown || other.value || found.length === 0) return null;
  const number = Math.max(0, finding.value);
  const one = found[number]!;
  const lines = one.message.split("\n").map((line) => line.trim());
  const title = [lines[0], lines.find((line) => /^and \w+.* access$/.test(line))].join(" ");
  return (
    <section class="findings" aria-label="Findings">
      <p>
        <b>
          {one.severity === "error" ? "✕" : "△"} {title}
        </b>{" "}
        {place(one)}. {lines.at(-1)}
      </p>
      <p class="do">
        {one.parties.map((party, index) => (
          <button key={index} class="small" disabled={party.step < 0} aria-pressed={finding.value === number && party.step === time.value} onClick={() => openFinding(number, index)}>
            {index === 0 ? "Later" : "Earlier"}: {threadOf(shown, party)}
          </button>
        ))}
        {found.length > 1 && (
          <>
            <button class="small" disabled={number === 0} onClick={() => openFinding(number - 1)}>
              Previous finding
            </button>
            <span>
              {number + 1} of {found.length}
            </span>
            <button class="small" disabled={number === found.length - 1} onClick={() => openFinding(number + 1)}>
              Next finding
            </button>
          </>
        )}
      </p>
    </section>
  );
}

function place(found: Finding): string {
  if (!found.buffer) return "";
  return found.size ? `at byte ${found.offset.toLocaleString()} of ${found.buffer}` : `in ${found.buffer}`;
}

/** A thread of a finding, and the line of its access. */
export function threadOf(model: Model, party: Party): string {
  return `lane ${party.lane} of block ${party.block}, warp ${party.warp}, ${model.place(party.instruction)}`;
}
