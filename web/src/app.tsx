// The page: where each view stands, and what is around them.

import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { KEYS, startEditing } from "./keys.ts";
import { Launch, runNow, Trouble } from "./launch.tsx";
import { LaunchChoice } from "./launches.tsx";
import { copied, copyLink, embedded, hasLink, onlyPane } from "./link.ts";
import { LessonPanel, Lessons } from "./lesson.tsx";
import { editable, editing, editingPtx, helpOpen, launchOpen, lesson, lessonsOpen, model, modelled, moment, other, pane, playing, projector, running, runs, show, speed, split, stepBy, time, warp, type Pane } from "./state.ts";
import { changeTheme } from "./theme.ts";
import { Code } from "./views/Code.tsx";
import { Compare, Outcome } from "./views/Compare.tsx";
import { Data } from "./views/Data.tsx";
import { ExplorablePanel } from "./views/Explorable.tsx";
import { Findings } from "./views/Findings.tsx";
import { Machine } from "./views/Machine.tsx";
import { Memory } from "./views/Memory.tsx";
import { Numbers } from "./views/Numbers.tsx";
import { Time } from "./views/Time.tsx";
import { Timeline } from "./views/Timeline.tsx";
import { Transport } from "./views/Transport.tsx";
import { Warp } from "./views/Warp.tsx";
import { ExplainerPanel } from "./views/Watching.tsx";
import { Sheet } from "./views/Sheet.tsx";

const TABS: readonly (readonly [Pane, string])[] = [
  ["code", "Code"],
  ["warp", "Warp"],
  ["memory", "Memory"],
  ["data", "Data"],
  ["machine", "Machine"],
  ["numbers", "Numbers"],
  ["time", "Time"],
];

export function App() {
  useEffect(startPlaying, []);
  useEffect(
    () =>
      effect(() => {
        document.documentElement.toggleAttribute("data-projector", projector.value);
      }),
    [],
  );
  const shown = model.value;
  if (!shown) return <p class="loading">{running.value ? "Running the kernel …" : "Opening the trace …"}</p>;
  const classes = ["app", `pane-${pane.value}`, other.value ? "comparing" : "", lesson.value ? "teaching" : "", show.value?.explainer ? "explaining" : "", show.value?.explorable ? "exploring" : "", launchOpen.value ? "launching" : "", embedded ? "embedded" : "", onlyPane ? "alone" : ""];
  return (
    <div class={classes.join(" ")}>
      <Top />
      <Trouble />
      <Launch />
      <Findings />
      <main style={split.value ? { "--split": `${split.value}%` } : {}}>
        <div class="left">
          <LessonPanel />
          <ExplainerPanel />
          <ExplorablePanel />
          <Code model={shown} />
        </div>
        <Splitter />
        <div class="right">
          <Tabs />
          {other.value && !["machine", "time"].includes(pane.value) ? <Compare /> : <Single />}
        </div>
      </main>
      <section class="bottom" aria-label="Steps">
        <Transport />
        <Timeline model={shown} />
      </section>
      <Lessons />
      <Keys />
      <Sheet />
    </div>
  );
}

const [NARROWEST, WIDEST] = [20, 70];

/** The border between the code and the views, to be dragged or moved by the arrow keys. */
function Splitter() {
  const place = (share: number) => (split.value = Math.round(Math.max(NARROWEST, Math.min(WIDEST, share))));
  const now = split.value || (other.value ? 36 : 44);
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label="Width of the code pane"
      aria-valuenow={now}
      aria-valuemin={NARROWEST}
      aria-valuemax={WIDEST}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => event.buttons & 1 && place((100 * event.clientX) / document.documentElement.clientWidth)}
      onDblClick={() => (split.value = 0)}
      onKeyDown={(event) => {
        const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
        if (!by) return;
        event.stopPropagation();
        event.preventDefault();
        place(now + by);
      }}
    />
  );
}

function Single() {
  const shown = model.value!;
  return (
    <div class="single" role="group" aria-label="Warp and view" tabIndex={0}>
      {!other.value && <Warp model={shown} moment={moment.value!} warp={warp.value} />}
      <section class="view below" id="below" role="tabpanel" aria-label={pane.value}>
        <h2 class="unseen">{TABS.find(([name]) => name === pane.value)?.[1]}</h2>
        {time.value >= shown.count && <Outcome model={shown} />}
        <Below />
      </section>
    </div>
  );
}

function Below() {
  const shown = model.value!;
  if (pane.value === "data") return <Data model={shown} warp={warp.value} time={time.value} />;
  if (pane.value === "machine") return <Machine model={shown} time={time.value} />;
  if (pane.value === "numbers") return <Numbers model={shown} warp={warp.value} time={time.value} />;
  if (pane.value === "time" && modelled.value) return <Time model={shown} made={modelled.value} />;
  return <Memory model={shown} warp={warp.value} time={time.value} />;
}

function Tabs() {
  return (
    <nav class="tabs" role="tablist" aria-label="Views">
      {TABS.filter(([name]) => name !== "time" || modelled.value).map(([name, title]) => (
        <button key={name} role="tab" class={`tab-${name}`} aria-selected={pane.value === name} aria-controls="below" onClick={() => (pane.value = name)}>
          {title}
        </button>
      ))}
    </nav>
  );
}

function Top() {
  const { launch, device } = model.value!.trace;
  const live = show.value!.live;
  const dims = (shape: readonly number[]) => shape.join("×").replace(/(×1)+$/, "");
  return (
    <header class="top">
      <Logo />
      {show.value!.launches.length > 1 && <LaunchChoice />}
      <h1 class={show.value!.launches.length > 1 ? "chosen" : ""} translate={false}>
        {launch.name}
        <span>
          ⟨{dims(launch.grid)}, {dims(launch.block)}⟩
        </span>
      </h1>
      <span class="chip" title={device.title}>
        {device.name} <b>{device.cc}</b>
      </span>
      {launch.schedule !== "converge" && (
        <span class="chip">
          {launch.schedule} <b>{launch.seed}</b>
        </span>
      )}
      <span class="spacer" />
      {runs.value && (
        <>
          {editing.value || editingPtx.value ? (
            <button class="primary" onClick={() => void runNow()} disabled={running.value}>
              Run
            </button>
          ) : (
            editable.value && (
              <button onClick={startEditing} title="Edit the kernel (E)">
                Edit
              </button>
            )
          )}
          <button aria-pressed={launchOpen.value} onClick={() => (launchOpen.value = !launchOpen.value)} title="Arguments, device, schedule (R)">
            Launch
          </button>
        </>
      )}
      {live && (
        <button aria-pressed={lessonsOpen.value} onClick={() => (lessonsOpen.value = !lessonsOpen.value)} title="Lessons (L)">
          Lessons
        </button>
      )}
      {hasLink && (
        <button class="icon" onClick={() => void copyLink()} title="Copy a link to this view" aria-label="Copy link">
          {copied.value ? "✓" : <LinkIcon />}
        </button>
      )}
      <span class="unseen" role="status">
        {copied.value ? "The link was copied" : ""}
      </span>
      <button class="icon" aria-pressed={projector.value} onClick={() => (projector.value = !projector.value)} title="Larger type, for a projector" aria-label="Projector">
        A
      </button>
      <button class="icon" onClick={changeTheme} title="Switch between light and dark" aria-label="Light or dark">
        ◐
      </button>
      <button class="icon" aria-pressed={helpOpen.value} onClick={() => (helpOpen.value = !helpOpen.value)} title="Keys (?)" aria-label="Keys">
        ?
      </button>
    </header>
  );
}

function LinkIcon() {
  return (
    <svg class="link" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M6.5 9.5l3-3M7 4.5l1.6-1.6a3 3 0 0 1 4.3 4.3L11.3 8.8M9 11.5l-1.6 1.6a3 3 0 0 1-4.3-4.3L4.7 7.2" />
    </svg>
  );
}

/** The threads of a warp. */
function Logo() {
  return (
    <svg class="logo" viewBox="0 0 22 22" role="img" aria-label="Warploom">
      <path d="M4 2v18M8.7 2v18M13.3 2v18M18 2v18" />
      <path class="weft" d="M1 7.5h5.2M11 7.5h4.6M6.4 14.5H11M15.7 14.5H21" />
    </svg>
  );
}

function Keys() {
  if (!helpOpen.value) return null;
  return (
    <div class="sheet keys" role="dialog" aria-label="Keys">
      <div class="head">
        <h2>Keys</h2>
        <button aria-label="Close" onClick={() => (helpOpen.value = false)}>
          ✕
        </button>
      </div>
      <dl>
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <p>Everything on this page was recorded while the kernel ran, except for values that are labelled as modelled. For the meaning of a mark, point at the mark or move the focus to it.</p>
    </div>
  );
}

/** Step by step, as fast as asked, until the end. */
function startPlaying(): () => void {
  return effect(() => {
    if (!playing.value) return;
    const timer = setInterval(() => {
      const shown = model.peek();
      if (!shown || time.peek() >= shown.count) playing.value = false;
      else stepBy(1);
    }, 1000 / speed.value);
    return () => clearInterval(timer);
  });
}
