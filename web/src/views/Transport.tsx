// The controls of time: play, step, jump; and where in time the page is.

import { model, moment, other, otherTime, otherWarp, speed, stepBy, time, toEvent, warp } from "../state.ts";
import { plays, togglePlaying } from "../watch.ts";

const SPEEDS = [1, 2, 4, 10, 30, 60];

export function Transport() {
  const shown = model.value;
  if (!shown) return null;
  const now = moment.value;
  const steps = shown.stepsOf(warp.value).length;
  return (
    <div class="transport" role="toolbar" aria-label="Time">
      <button onClick={() => toEvent(true)} title="Previous event of this warp (Shift ←)" aria-label="Previous event">
        <Icon path="M2 2h2v10H2zM13 2v10L5 7z" />
      </button>
      <button onClick={() => stepBy(-1)} title="Step back (←)" aria-label="Step back">
        <Icon path="M9.5 2v10L3.5 7z" />
      </button>
      <button class="play" onClick={togglePlaying} title="Play or pause (Space)" aria-label={plays.value ? "Pause" : "Play"} aria-pressed={plays.value}>
        <Icon path={plays.value ? "M3 2h3v10H3zM8 2h3v10H8z" : "M3 1.5v11l9-5.5z"} />
      </button>
      <button onClick={() => stepBy(1)} title="Step (→)" aria-label="Step">
        <Icon path="M4.5 2v10l6-5z" />
      </button>
      <button onClick={() => toEvent(false)} title="Next event of this warp (Shift →)" aria-label="Next event">
        <Icon path="M10 2h2v10h-2zM1 2v10l8-5z" />
      </button>
      <label class="speed">
        <select aria-label="Speed" value={String(speed.value)} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
          {SPEEDS.map((one) => (
            <option key={one} value={String(one)}>
              {one}/s
            </option>
          ))}
        </select>
      </label>
      <output class="when" data-testid="position">
        step <b>{now ? Math.max(0, now.nth + 1).toLocaleString() : 0}</b> of {steps.toLocaleString()}
        <span>
          {" "}
          · {time.value >= shown.count ? "the end" : `${(time.value + 1).toLocaleString()} of ${shown.count.toLocaleString()} in the launch`}
        </span>
        {other.value && <span> · the other run: step {otherNth().toLocaleString()}</span>}
      </output>
    </div>
  );
}

/** The number of the other run's step, among those of its warp. */
function otherNth(): number {
  const its = other.value!;
  return its.stepsUntil(otherWarp.value, otherTime.value);
}

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 14 14" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
