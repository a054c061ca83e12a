// The lessons: a question, then captions that lead through the steps of a kernel.

import { batch } from "@preact/signals";
import { readLesson, run } from "./load.ts";
import { Model } from "./model.ts";
import type { Anchor, LaunchRequest, Lesson } from "./schema.ts";
import { caption, choose, goTo, labels, lesson, lessonsOpen, model, open, pane, playing, predicted, refusal, request, running, show, time, type Pane } from "./state.ts";

/** The step that an anchor means; null where there is none. */
export function resolve(model: Model, anchor: Anchor): number | null {
  const warp = model.trace.warps.findIndex((one) => one.block === anchor.block && one.warp === anchor.warp);
  if (warp < 0) return null;
  const found: number[] = [];
  for (const step of model.stepsOf(warp)) if (fits(model, step, anchor)) found.push(step);
  return found[anchor.nth > 0 ? anchor.nth - 1 : found.length + anchor.nth] ?? null;
}

function fits(model: Model, step: number, anchor: Anchor): boolean {
  if (anchor.event && !model.eventsAt(step).some((kind) => kind === anchor.event)) return false;
  const code = model.code(step);
  if (anchor.ptx && !code.text.replace(/^@!?%\w+ /, "").startsWith(anchor.ptx)) return false;
  if (!anchor.line) return true;
  const text = model.trace.sources[code.file]?.text.split("\n")[code.line - 1] ?? "";
  return text.includes(anchor.line);
}

/** Show caption number `number`; -1 is the question. */
export function showCaption(number: number): void {
  const [taught, shown] = [lesson.value, model.value];
  if (!taught || !shown) return;
  batch(() => {
    playing.value = false;
    caption.value = Math.max(-1, Math.min(number, taught.captions.length - 1));
    const said = taught.captions[caption.value];
    if (!said) return;
    const step = resolve(shown, said.at);
    const warp = shown.trace.warps.findIndex((one) => one.block === said.at.block && one.warp === said.at.warp);
    if (step === null) return;
    choose(warp);
    goTo(step);
    if (said.look) pane.value = said.look as Pane;
  });
}

export function startLesson(taught: Lesson): void {
  batch(() => {
    lesson.value = taught;
    caption.value = -1;
    predicted.value = null;
    request.value = taught.request;
    labels.value = taught.versus ? [taught.label, taught.versus.label] : [taught.label];
    lessonsOpen.value = false;
  });
}

export async function openLesson(name: string): Promise<void> {
  lessonsOpen.value = false;
  refusal.value = null;
  running.value = true;
  const taught = await readLesson(name);
  const first = await run(taught.request);
  const second = taught.versus && first instanceof Model ? await run(changed(taught.request, taught)) : null;
  running.value = false;
  if (!(first instanceof Model)) refusal.value = first;
  else if (second && !(second instanceof Model)) refusal.value = second;
  else {
    startLesson(taught);
    open(first, second);
  }
}

/** A request with what the lesson's other run has different. */
export function changed(asked: LaunchRequest, taught: Lesson): LaunchRequest {
  const { label: _, ...parts } = taught.versus!;
  const given = Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== null));
  return { ...asked, ...given };
}

export function LessonPanel() {
  const taught = lesson.value;
  const shown = model.value;
  if (!taught || !shown) return null;
  const said = taught.captions[caption.value];
  const missing = said ? resolve(shown, said.at) === null : false;
  return (
    <aside class="lesson" aria-label="Lesson">
      <header>
        <h2>{taught.title}</h2>
        <button aria-label="Leave the lesson" title="Leave the lesson" onClick={() => (lesson.value = null)}>
          ✕
        </button>
      </header>
      {said ? (
        <div class="caption" aria-live="polite" data-missing={missing ? "yes" : undefined}>
          <p>{said.text}</p>
          {resolve(shown, said.at) !== time.value && !missing && (
            <button class="back" onClick={() => showCaption(caption.value)}>
              back to this step
            </button>
          )}
        </div>
      ) : (
        <Ask taught={taught} />
      )}
      <footer>
        <button onClick={() => showCaption(caption.value - 1)} disabled={caption.value < 0} aria-label="Previous caption" title="Previous (P)">
          ‹
        </button>
        <span class="dots" aria-label={`Caption ${caption.value + 1} of ${taught.captions.length}`}>
          {taught.captions.map((_, index) => (
            <i key={index} class={index === caption.value ? "on" : index < caption.value ? "past" : ""} />
          ))}
        </span>
        <button class="primary" onClick={() => showCaption(caption.value + 1)} disabled={caption.value >= taught.captions.length - 1} title="Next (N)">
          {caption.value < 0 ? "Show me" : "Next"}
        </button>
      </footer>
    </aside>
  );
}

function Ask({ taught }: { taught: Lesson }) {
  const { question } = taught;
  const given = predicted.value;
  return (
    <div class="question">
      <p>{taught.summary}</p>
      <fieldset>
        <legend>{question.ask}</legend>
        {question.choices.map((choice, index) => (
          <button
            key={choice}
            aria-pressed={given === index}
            class={given === null ? "" : index === question.answer ? "right" : index === given ? "wrong" : "rest"}
            onClick={() => (predicted.value = index)}
          >
            {given !== null && (index === question.answer ? "✓ " : index === given ? "✕ " : "")}
            {choice}
          </button>
        ))}
      </fieldset>
      {given !== null && <p class="because">{question.because}</p>}
    </div>
  );
}

export function Lessons() {
  if (!lessonsOpen.value) return null;
  return (
    <div class="sheet" role="dialog" aria-label="Lessons">
      <header>
        <h2>Lessons</h2>
        <button aria-label="Close" onClick={() => (lessonsOpen.value = false)}>
          ✕
        </button>
      </header>
      <ol>
        {show.value!.lessons.map((one) => (
          <li key={one.id}>
            <button class={lesson.value?.id === one.id ? "on" : ""} onClick={() => void openLesson(one.id)}>
              <b>{one.title}</b>
              <span>{one.summary}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}
