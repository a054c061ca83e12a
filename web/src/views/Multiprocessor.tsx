// One multiprocessor, drawn with the device's own sizes: its schedulers with the warps in their
// slots, its cores, registers, memories and caches, and what all multiprocessors share.

import { tip } from "../help.ts";
import type { Model, Moment } from "../model.ts";
import type { BlockResidency, Multiprocessor as Sizes, ResidentKernel } from "../schema.ts";
import { choose, warp as chosen } from "../state.ts";
import { GLYPHS } from "./glyphs.ts";

interface Props {
  readonly model: Model;
  readonly sizes: Sizes;
  readonly sm: number;
  readonly resident: readonly BlockResidency[];
  readonly beside: readonly ResidentKernel[];
  readonly moments: readonly Moment[];
}

interface Slot {
  readonly number: number;
  /** Index of the recorded warp in the slot; null for an empty slot. */
  readonly warp: number | null;
  /** The kernel beside the launch whose warp is in the slot. */
  readonly other?: string;
}

export function Multiprocessor({ model, sizes, sm, resident, beside, moments }: Props) {
  const { trace } = model;
  const slots = slotsOf(model, sizes, resident, beside);
  const [bx, by, bz] = trace.launch.block;
  const threads = bx * by * bz * resident.length;
  const warps = Math.ceil((bx * by * bz) / trace.device.warp_size);
  const parts = Array.from({ length: sizes.schedulers }, (_, part) => part);
  return (
    <section class="mp" aria-label={`SM ${sm}`}>
      <h3 {...tip("sm")} tabIndex={0}>
        SM {sm} of {trace.device.title} <em>with the resources of this device</em>
      </h3>
      <div class="mp-parts">
        {parts.map((part) => (
          <Part key={part} part={part} slots={slots.filter((slot) => slot.number % sizes.schedulers === part)} cores={sizes.cores / sizes.schedulers} moments={moments} />
        ))}
      </div>
      <div class="mp-rows">
        <Row name="Threads" used={threads} total={sizes.max_threads} />
        <Row name="Registers" used={resident.length * warps * trace.occupancy.warp_registers} total={sizes.registers} />
        <Row name="Shared memory" used={resident.length * trace.occupancy.shared_bytes} total={sizes.shared_bytes} unit="bytes" />
        {sizes.l1_bytes > 0 && <Row name={sizes.l1_holds_shared ? "L1 cache, including shared memory" : "L1 cache"} total={sizes.l1_bytes} unit="bytes" />}
        {sizes.texture_cache_bytes > 0 && <Row name="Texture cache" total={sizes.texture_cache_bytes} unit="bytes" />}
        <Row name="Constant cache" total={sizes.constant_cache_bytes} unit="bytes" />
      </div>
      <div class="mp-rows mp-shared">
        {sizes.l2_bytes > 0 && <Row name={`L2 cache, for all ${trace.device.sms} SMs`} total={sizes.l2_bytes} unit="bytes" />}
        <Row name="Device memory (DRAM)" total={sizes.memory_bytes} unit="bytes" />
      </div>
    </section>
  );
}

/** The warp slots of the SM, in order, with the recorded warps in them. */
function slotsOf(model: Model, sizes: Sizes, resident: readonly BlockResidency[], beside: readonly ResidentKernel[]): Slot[] {
  const { trace } = model;
  const [bx, by, bz] = trace.launch.block;
  const warpsOfBlock = Math.ceil((bx * by * bz) / trace.device.warp_size);
  const slots: Slot[] = Array.from({ length: sizes.max_warps }, (_, number) => ({ number, warp: null }));
  let others = 0;
  for (const one of beside) {
    for (let count = one.blocks * one.warps; count > 0 && others < slots.length; count--, others++) slots[others] = { number: others, warp: null, other: one.kernel };
  }
  for (const one of resident) {
    const first = others + Math.floor(one.slot / trace.device.sms) * warpsOfBlock;
    trace.warps.forEach((each, index) => {
      const number = first + each.warp;
      if (each.block === one.block && number < slots.length) slots[number] = { number, warp: index };
    });
  }
  return slots;
}

function Part({ part, slots, cores, moments }: { part: number; slots: Slot[]; cores: number; moments: readonly Moment[] }) {
  const issuing = slots.map((slot) => (slot.warp === null ? null : moments[slot.warp]!)).find((one) => one?.status === "executing");
  const lanes = issuing?.executing ?? 0;
  return (
    <div class="mp-part">
      <h4>Scheduler {part}</h4>
      <div class="mp-slots">
        {slots.map((slot) => (slot.warp === null ? <Without key={slot.number} other={slot.other} /> : <WarpSlot key={slot.number} warp={slot.warp} moment={moments[slot.warp]!} />))}
      </div>
      <h4>
        {cores} {cores === 1 ? "core" : "cores"}
      </h4>
      <div class="mp-cores" aria-hidden="true">
        {Array.from({ length: Math.ceil(cores) }, (_, core) => (
          <i key={core} class={(lanes >>> core % 32) & 1 ? "on" : ""} />
        ))}
      </div>
    </div>
  );
}

/** A slot without a warp of the launch. */
function Without({ other }: { other: string | undefined }) {
  return other === undefined ? <i class="mp-empty" /> : <i class="mp-empty mp-other" tabIndex={0} role="img" translate={false} aria-label={other} data-tip={`${other}, a kernel that is resident at the same time as this launch\n`} />;
}

function WarpSlot({ warp, moment }: { warp: number; moment: Moment }) {
  return (
    <button class={`w st-${moment.status.replace(/\W/g, "-")}${warp === chosen.value ? " chosen" : ""}`} onClick={() => choose(warp)} aria-label={`warp ${warp} of the trace: ${moment.status}`}>
      {GLYPHS[moment.status]}
    </button>
  );
}

function Row({ name, used, total, unit }: { name: string; used?: number; total: number; unit?: "bytes" }) {
  const shown = (value: number) => (unit === "bytes" ? bytes(value) : value.toLocaleString());
  return (
    <div class="mp-row">
      <span>{name}</span>
      <b>{used === undefined ? shown(total) : `${shown(used)} of ${shown(total)}`}</b>
      {used !== undefined && (
        <div class="bar">
          <i style={{ width: `${total ? Math.min(100, (100 * used) / total) : 0}%` }} />
        </div>
      )}
    </div>
  );
}

/** A size in the largest unit in which it has no long fraction. */
export function bytes(value: number): string {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (value >= size) return `${Number((value / size).toFixed(1)).toLocaleString()} ${unit}`;
  }
  return `${value} bytes`;
}
