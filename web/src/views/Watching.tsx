// The controls of a film, and the panel of an explainer.

import { show } from "../state.ts";
import { LONGEST_CUT } from "../film.ts";
import { canSpeak, cut, elapsed, film, moving, place, seek, skipQuestion, spoken, stop, toggleCut, toggleWatching, turnTo, waiting, watching } from "../watch.ts";
import { Prose } from "./Prose.tsx";

/** Play, where the film is, and how it plays. */
export function WatchControls() {
  const shown = film.value!;
  return (
    <div class="watch" role="group" aria-label="Watch">
      <button class={watching.value ? "" : "go"} onClick={toggleWatching} title="Play the captions and steps as a video (W)">
        {watching.value ? "❚❚ Pause" : "▶ Watch"}
      </button>
      <input
        type="range"
        min={0}
        max={shown.seconds}
        step={0.1}
        value={elapsed.value}
        aria-label="Time of the film"
        aria-valuetext={`${clock(elapsed.value)} of ${clock(shown.seconds)}`}
        onInput={(event) => seek(Number(event.currentTarget.value))}
      />
      <output class="clock" aria-label="Time">
        {clock(elapsed.value)} / {clock(shown.seconds)}
      </output>
      {!show.value!.explainer && (
        <button aria-pressed={cut.value} onClick={toggleCut} title={`Only captions, at most ${LONGEST_CUT} seconds`}>
          {LONGEST_CUT} s
        </button>
      )}
      {canSpeak && (
        <button aria-pressed={spoken.value} onClick={() => (spoken.value = !spoken.value)} title="Read the captions aloud (V)">
          Voice
        </button>
      )}
      {waiting.value && (
        <p role="status">
          Choose an answer, or{" "}
          <button onClick={skipQuestion} title="Continue without an answer (W)">
            continue
          </button>
        </p>
      )}
    </div>
  );
}

function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** The text of an explainer's stop, with what was counted there. */
export function ExplainerPanel() {
  const [told, now] = [show.value!.explainer, stop.value];
  if (!told || !now || !film.value) return null;
  const count = told.stops.length;
  return (
    <aside class="lesson explainer" aria-label="Explainer">
      <header>
        <h2>{told.title}</h2>
        <span class="topics" role="list" aria-label="Topics">
          {[...new Set(told.stops.map((one) => one.topic))].map((topic) => (
            <span key={topic} role="listitem" aria-current={topic === now.topic ? "step" : undefined}>
              {topic}
            </span>
          ))}
        </span>
      </header>
      <div class={moving.value ? "caption moving" : "caption"} aria-live="polite">
        <p>
          <Prose text={now.text} before={told.stops.slice(0, place.value).map((one) => one.text)} />
        </p>
        <p class="counted">{now.figure}</p>
      </div>
      <WatchControls />
      <footer>
        <button onClick={() => turnTo(place.value - 1)} disabled={place.value <= 0} aria-label="Previous caption" title="Previous (P)">
          ‹
        </button>
        <span class="from">
          lesson {show.value!.lessons.length && !show.value!.live ? <a href={`${told.names[now.trace]}.html`}>{told.names[now.trace]}</a> : <code>{told.names[now.trace]}</code>}
        </span>
        <button class="primary" onClick={() => turnTo(place.value + 1)} disabled={place.value >= count - 1} title="Next (N)">
          Next
        </button>
      </footer>
    </aside>
  );
}
