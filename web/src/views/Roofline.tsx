// The roofline of the modelled time: where the kernel stands below the device's throughputs.

import { tip } from "../help.ts";
import type { ModelledRoof } from "../schema.ts";

const MEMORIES = ["L1", "Shared", "L2", "DRAM"];
const FLOATING = ["FP64", "FP32", "FP16", "TENSOR"];
const [WIDTH, HEIGHT, LEFT, TOP, BELOW] = [300, 150, 46, 8, 30];
/** Powers of ten from the roof down to the bottom of the picture. */
const DECADES = 5;

/** A kernel under the roof of one memory. */
interface Point {
  readonly name: string;
  readonly intensity: number;
  readonly bandwidth: number;
  readonly roof: number;
}

export function Roofline({ roofs }: { roofs: readonly ModelledRoof[] }) {
  const unit = arithmetic(roofs);
  const head = (
    <h3 {...tip("roofline")} tabIndex={0}>
      Roofline <em>modelled</em>
    </h3>
  );
  if (!unit) return <div class="roofline">{head}<p class="note">The kernel executes no arithmetic that the roofline counts.</p></div>;
  const rate = unit.used * unit.peak;
  const points = roofs.filter((one) => MEMORIES.includes(one.name) && one.used > 0).map((one) => point(one, unit, rate));
  return (
    <div class="roofline">
      {head}
      <Picture unit={unit} rate={rate} points={points} />
      <table>
        <tbody>
          {points.map((one) => (
            <tr key={one.name}>
              <th scope="row">{one.name}</th>
              <td>
                {one.intensity.toPrecision(2)} {unit.unit} per byte
              </td>
              <td>
                {percent(rate / one.roof)} of {short(one.roof)}/s, bound by {one.roof < unit.peak ? "memory" : "arithmetic"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The most used arithmetic unit, one of floating point if any was used. */
function arithmetic(roofs: readonly ModelledRoof[]): ModelledRoof | null {
  const units = roofs.filter((one) => one.used > 0 && one.name !== "Issue" && !MEMORIES.includes(one.name));
  const rank = (one: ModelledRoof) => Number(FLOATING.includes(one.name)) + one.used;
  return units.sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

function point(memory: ModelledRoof, unit: ModelledRoof, rate: number): Point {
  const intensity = rate / (memory.used * memory.peak);
  return { name: memory.name, intensity, bandwidth: memory.peak, roof: Math.min(unit.peak, intensity * memory.peak) };
}

function Picture({ unit, rate, points }: { unit: ModelledRoof; rate: number; points: readonly Point[] }) {
  const seen = points.flatMap((one) => [one.intensity, unit.peak / one.bandwidth]);
  const low = Math.floor(Math.log10(Math.min(1, ...seen)));
  const high = Math.ceil(Math.log10(Math.max(10, ...seen)));
  const top = Math.ceil(Math.log10(unit.peak));
  const bottom = Math.min(top - DECADES, Math.floor(Math.log10(rate)));
  const x = (intensity: number) => LEFT + (WIDTH * (Math.log10(intensity) - low)) / (high - low);
  const y = (value: number) => TOP + (HEIGHT * (top - Math.max(bottom, Math.log10(value)))) / (top - bottom);
  const said = points.map((one) => `${one.name}: ${percent(rate / one.roof)} of its roof`).join(", ");
  return (
    <svg viewBox={`0 0 ${LEFT + WIDTH + 8} ${TOP + HEIGHT + BELOW}`} role="img" aria-label={`Roofline. ${said}`}>
      <path class="axis" d={`M${LEFT} ${TOP}V${TOP + HEIGHT}H${LEFT + WIDTH}`} />
      {Array.from({ length: top - bottom + 1 }, (_, i) => (
        <text key={i} x={LEFT - 4} y={y(10 ** (bottom + i)) + 3} text-anchor="end">
          {short(10 ** (bottom + i))}
        </text>
      ))}
      {Array.from({ length: high - low + 1 }, (_, i) => (
        <text key={i} x={x(10 ** (low + i))} y={TOP + HEIGHT + 12} text-anchor="middle">
          {10 ** (low + i)}
        </text>
      ))}
      <text x={LEFT + WIDTH / 2} y={TOP + HEIGHT + 26} text-anchor="middle">
        {unit.unit} per byte; {unit.name} {unit.unit} per second
      </text>
      {points.map((one, index) => {
        const ridge = unit.peak / one.bandwidth;
        return (
          <g key={one.name}>
            <path class="roof" d={`M${x(10 ** low)} ${y(10 ** low * one.bandwidth)}L${x(ridge)} ${y(unit.peak)}H${LEFT + WIDTH}`} />
            <circle cx={x(one.intensity)} cy={y(rate)} r="3.5" />
            <text x={x(one.intensity) + 6} y={y(rate) + (index % 2 ? 11 : -4)}>
              {one.name}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

function percent(share: number): string {
  return `${(100 * share).toPrecision(share < 0.1 ? 2 : 3)} %`;
}

function short(value: number): string {
  for (const [letter, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]] as const) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${letter}`;
  }
  return String(Number(value.toPrecision(3)));
}
