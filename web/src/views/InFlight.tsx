// What a block has in flight, and its mbarriers, at the moment that is shown.

import { batch } from "@preact/signals";
import type { Asynchronous, BarrierState, InFlight as Flight } from "../asynchronous.ts";
import { tip } from "../help.ts";
import type { Model } from "../model.ts";
import { choose, goTo } from "../state.ts";

const MOST_SHOWN = 32;

export function InFlight({ model, made, block, time }: { model: Model; made: Asynchronous; block: number; time: number }) {
  const flights = made.inFlight(block, time);
  const barriers = made.barriers(block, time);
  return (
    <div class="in-flight">
      <div>
        <h3 {...tip("in_flight")} tabIndex={0}>
          In flight <em>issued by block {block}, not awaited yet</em>
        </h3>
        {flights.length === 0 ? <p class="empty">Nothing is in flight.</p> : <Flights model={model} flights={flights} />}
      </div>
      {barriers.length > 0 && (
        <div>
          <h3 {...tip("mbarrier")} tabIndex={0}>
            mbarriers <em>of block {block}</em>
          </h3>
          <Barriers barriers={barriers} />
        </div>
      )}
    </div>
  );
}

function Flights({ model, flights }: { model: Model; flights: Flight[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>work</th>
          <th>from</th>
          <th>bytes</th>
          <th>signals</th>
        </tr>
      </thead>
      <tbody>
        {flights.slice(0, MOST_SHOWN).map((one) => (
          <tr key={`${one.instruction}/${one.barrier}`} class={one.forgotten ? "forgotten" : ""}>
            <td>
              {one.count > 1 ? `${one.count} × ` : ""}
              {one.kind}
              {one.forgotten && <em> never awaited</em>}
            </td>
            <td>
              <button
                class="link"
                title={model.trace.code[one.instruction]!.text}
                aria-label={`Go to the step that issued it: ${model.place(one.instruction)}`}
                onClick={() =>
                  batch(() => {
                    choose(one.warp);
                    goTo(one.step);
                  })
                }
              >
                {model.place(one.instruction)}
              </button>
            </td>
            <td>{one.bytes ? one.bytes.toLocaleString() : "–"}</td>
            <td>{one.barrier || "–"}</td>
          </tr>
        ))}
        {flights.length > MOST_SHOWN && (
          <tr>
            <td colSpan={4}>and {flights.length - MOST_SHOWN} more</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Barriers({ barriers }: { barriers: BarrierState[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>mbarrier</th>
          <th>phase</th>
          <th>arrivals pending</th>
          <th>bytes pending</th>
        </tr>
      </thead>
      <tbody>
        {barriers.slice(0, MOST_SHOWN).map((one) => (
          <tr key={one.name}>
            <td translate={false}>{one.name}</td>
            <td>{one.phase}</td>
            <td>
              {one.pending} of {one.expected}
            </td>
            <td>{one.bytes.toLocaleString()}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
