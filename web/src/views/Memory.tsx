// An access to memory: lanes above, what memory moves for them below, and who gets what from where.

import { count, has, LANES, lanesOf, named } from "../bits.ts";
import { tip } from "../help.ts";
import type { Access, Model } from "../model.ts";

const WIDTH = 640;
const TOP = 26;
const BELOW = 118;

const RULES: Record<string, string> = {
  global_by_sectors: "in 32-byte sectors (compute capability 5.0 and later)",
  global_by_segments: "in 32-byte segments that bypass L1 (compute capability 2.x and 3.x)",
  global_by_lines: "in 128-byte lines through L1 (compute capability 2.x and 3.x)",
  global_in_order: "coalesced within a half-warp if lane k accesses word k of an aligned segment, otherwise one transaction per lane (compute capability 1.0 and 1.1)",
  global_by_halves: "in segments, separately for each half-warp, reduced to the part that is used (compute capability 1.2 and 1.3)",
  local_by_sectors: "in 32-byte sectors, in the layout of local memory",
  local_by_lines: "in 128-byte lines, in the layout of local memory",
  local_in_order: "coalesced within a half-warp if lane k accesses word k of an aligned segment, otherwise one transaction per lane, in the layout of local memory (compute capability 1.0 and 1.1)",
  local_by_halves: "in segments, separately for each half-warp (compute capability 1.2 and 1.3)",
  shared_32_banks: "in 32 banks of 4 bytes (compute capability 5.0 and later)",
  shared_32_banks_read: "in 32 banks of 4 bytes (compute capability 5.0 and later)",
  shared_32_banks_quarters: "in 32 banks of 4 bytes (compute capability 2.x)",
  shared_wide_banks: "in 32 banks of 8 bytes (compute capability 3.x)",
  shared_wide_banks_of_words: "in 32 banks of 8 bytes in 4-byte mode (compute capability 3.x)",
  shared_16_banks_read: "in 16 banks, separately for each half-warp (compute capability 1.x)",
  shared_16_banks_write: "in 16 banks, separately for each half-warp (compute capability 1.x)",
  constant_by_warp: "one address per pass, for all lanes",
  constant_by_halves: "one address per pass, separately for each half-warp (compute capability 1.x)",
};

export function Memory({ model, warp, time, compact = false }: { model: Model; warp: number; time: number; compact?: boolean }) {
  const found = model.lastAccesses(warp, time);
  const first = found[0];
  if (!first) return <p class="empty">This warp has not accessed memory yet.</p>;
  const now = model.moment(warp, time).step === first.step;
  return (
    <div class={now ? "memory" : "memory past"}>
      {!compact && !now && <p class="note">The warp's last access, {model.place(first.site.instruction)}:</p>}
      {found.map((access, index) => (
        <One key={index} model={model} access={access} compact={compact} />
      ))}
    </div>
  );
}

function One({ model, access, compact }: { model: Model; access: Access; compact: boolean }) {
  const { site, shape } = access;
  return (
    <figure class={narrow() ? "narrow" : ""}>
      <Summary model={model} access={access} />
      {site.space === "shared" ? <Banks model={model} access={access} /> : <Transactions model={model} access={access} labels={compact || narrow() ? 3 : 8} />}
      <figcaption>
        {site.rule ? `How this device counts the access: ${RULES[site.rule] ?? site.rule}.` : "Accesses to the call stack are not counted."}
        {count(shape.lanes) < LANES ? ` Accessed by ${named(shape.lanes)}.` : ""}
      </figcaption>
    </figure>
  );
}

/** Whether drawings are about half as wide as they are made for, as on a phone. */
function narrow(): boolean {
  return innerWidth < 560;
}

function Summary({ access }: { model: Model; access: Access }) {
  const { site, shape } = access;
  const [asked, moved] = [shape.cost[7]!, shape.cost[8]!];
  const shared = site.space === "shared";
  const taken = shared ? shape.cost[9]! : shape.cost[3]!;
  const unit = shared ? "pass" : "transaction";
  const plural = taken === 1 ? "" : shared ? "es" : "s";
  const bad = shared ? shape.cost[10]! > 0 : site.best > 0 && taken > site.best;
  return (
    <p class="summary">
      <b>
        {site.space} {site.op}
      </b>
      <span>{site.size} bytes per lane</span>
      <span class={bad ? "bad" : "good"} {...tip(bad ? (shared ? "conflict" : "uncoalesced") : shared ? "pass" : "transaction")}>
        {bad ? "▲" : "●"} {taken} {unit}
        {plural}
        {shared ? (bad ? `, ${shape.cost[10]} of them for conflicts` : ", no conflict") : site.best > 0 && taken >= site.best && count(shape.lanes) === LANES ? ` (${site.best} at best)` : ""}
      </span>
      {!shared && moved > 0 && (
        <span>
          {asked} bytes requested, {moved} moved: {Math.round((100 * asked) / moved)} %
        </span>
      )}
    </p>
  );
}

/** Where lane `lane` of 32 stands above. */
function laneX(lane: number): number {
  return 8 + lane * 19.2 + (lane >> 3) * 2 + (lane >> 4) * 4;
}

function LaneRow({ lanes }: { lanes: number }) {
  return (
    <g>
      {Array.from({ length: LANES }, (_, lane) => (
        <g key={lane} transform={`translate(${laneX(lane)} 6)`} class={has(lanes, lane) ? "a-lane on" : "a-lane"}>
          <rect x="-1" y="0" width="15" height="14" rx="2" />
          <text x="6.5" y="10.5">
            {lane}
          </text>
        </g>
      ))}
    </g>
  );
}

function Transactions({ model, access, labels }: { model: Model; access: Access; labels: number }) {
  const { shape, site, base } = access;
  const lanes = lanesOf(shape.lanes);
  const total = shape.served.reduce((sum, [, size]) => sum + size, 0) || 1;
  const gap = shape.served.length > 24 ? 1 : 3;
  const scale = (WIDTH - 12 - gap * shape.served.length) / total;
  let x = 6;
  const parts = shape.served.map(([start, size, mask]) => {
    const part = { start, size, mask, x, width: size * scale };
    x += part.width + gap;
    return part;
  });
  const words = site.space === "local" ? Math.max(1, site.size / 4) : 1;
  const every = Math.ceil(parts.length / labels);
  return (
    <svg viewBox={`0 0 ${WIDTH} 166`} class="picture" role="img" aria-label={`${parts.length} transactions for ${named(shape.lanes)}`}>
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path d="M0 0v5" class="t-hatch" />
        </pattern>
      </defs>
      <LaneRow lanes={shape.lanes} />
      {parts.map((part, index) => (
        <g key={index} role="img" {...tip("transaction", `${part.size} bytes at ${model.where(site.space, base + part.start)}, for ${named(part.mask)}.`)}>
          <rect class="t-moved" x={part.x} y={BELOW} width={part.width} height="18" rx="2" />
          <rect fill="url(#hatch)" x={part.x} y={BELOW} width={part.width} height="18" rx="2" />
          {lanesOf(part.mask).map((lane) => {
            const offset = shape.offsets[lanes.indexOf(lane)]!;
            return Array.from({ length: words }, (_, word) => {
              const from = Math.max(0, offset + 128 * word - part.start);
              if (offset + 128 * word < part.start || from >= part.size) return null;
              const size = Math.min(words > 1 ? 4 : site.size, part.size - from);
              const at = part.x + from * scale;
              return (
                <g key={`${lane}.${word}`}>
                  <path class="t-line" d={`M${laneX(lane) + 6.5} ${TOP - 6}C${laneX(lane) + 6.5} ${TOP + 44} ${at + (size * scale) / 2} ${BELOW - 50} ${at + (size * scale) / 2} ${BELOW}`} />
                  <rect class="t-used" x={at} y={BELOW} width={Math.max(0.8, size * scale - 0.4)} height="18" rx="1" />
                </g>
              );
            });
          })}
          {index % every === 0 && (
            <text class="t-name" x={part.x} y={BELOW + 31}>
              {model.where(site.space, base + part.start)}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

function Banks({ model, access }: { model: Model; access: Access }) {
  const { shape, site, base } = access;
  const device = model.trace.device;
  const banks = site.rule.startsWith("shared_16") ? 16 : 32;
  const bytes = device.bank_bytes;
  const lanes = lanesOf(shape.lanes);
  const bankX = (bank: number) => (banks === 32 ? laneX(bank) : 8 + bank * 39);
  const width = banks === 32 ? 15 : 32;
  const bankOf = (lane: number) => Math.floor((base + shape.offsets[lanes.indexOf(lane)]!) / bytes) % banks;
  const turns = new Map(shape.served.flatMap(([, , mask], turn) => lanesOf(mask).map((lane) => [lane, turn])));
  const row = Math.min(15, 130 / Math.max(1, shape.served.length));
  const bottom = 84;
  const height = bottom + 24 + row * shape.served.length;
  return (
    <svg viewBox={`0 0 ${WIDTH} ${height}`} class="picture" role="img" aria-label={`${shape.served.length} passes over ${banks} banks`}>
      <LaneRow lanes={shape.lanes} />
      {lanes.map((lane) => (
        <path
          key={lane}
          class={`b-line turn-${Math.min(3, turns.get(lane) ?? 0)}`}
          d={`M${laneX(lane) + 6.5} ${TOP - 6}C${laneX(lane) + 6.5} ${TOP + 20} ${bankX(bankOf(lane)) + width / 2} ${bottom - 26} ${bankX(bankOf(lane)) + width / 2} ${bottom}`}
        />
      ))}
      {Array.from({ length: banks }, (_, bank) => {
        const here = lanes.filter((lane) => bankOf(lane) === bank);
        return (
          <g key={bank} class={here.length ? "bank on" : "bank"} role="img" {...tip("bank", `Bank ${bank}: ${here.length ? named(here.reduce((m, l) => m | (1 << l), 0)) : "no lane"}.`)}>
            <rect x={bankX(bank) - 1} y={bottom} width={width} height="13" rx="2" />
            <text x={bankX(bank) - 1 + width / 2} y={bottom + 10}>
              {bank}
            </text>
          </g>
        );
      })}
      {shape.served.map(([, , mask], turn) => (
        <g key={turn} role="img" {...tip("pass", `Pass ${turn + 1} of ${shape.served.length} serves ${named(mask)}.`)}>
          <rect class="p-row" x="0" y={bottom + 18 + row * turn} width={WIDTH} height={row} />
          {lanesOf(mask).map((lane) => (
            <g key={lane} class={`p-cell turn-${Math.min(3, turn)}`}>
              <rect x={bankX(bankOf(lane)) - 1} y={bottom + 18.5 + row * turn} width={width} height={Math.max(1, row - 1.5)} rx="1.5" />
              {row >= 10 && (
                <text x={bankX(bankOf(lane)) - 1 + width / 2} y={bottom + 18 + row * turn + row - 4.5}>
                  {lane}
                </text>
              )}
            </g>
          ))}
        </g>
      ))}
    </svg>
  );
}
