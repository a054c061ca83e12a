// The lessons: a question, captions that lead through the steps of a kernel, a recap, and a task.

import { batch, signal } from "@preact/signals";
import { resolve } from "./anchors.ts";
import { finished, progress, showCaption, working } from "./captions.ts";
import { check, readLesson, run } from "./load.ts";
import { Model } from "./model.ts";
import type { Anchor, LaunchRequest, Lesson, Ranking, Refusal, Variant, Verdict } from "./schema.ts";
import { caption, editing, labels, lesson, lessonsOpen, model, open, other, pane, policy, predicted, refusal, request, running, show, showEnd, showWrong, time } from "./state.ts";
import { Prose } from "./views/Prose.tsx";
import { WatchControls } from "./views/Watching.tsx";
import { film, moving, turnTo } from "./watch.ts";

const checking = signal(false);
const verdict = signal<Verdict | null>(null);
const hints = signal(0);
const solved = signal(false);

export function startLesson(taught: Lesson): void {
  batch(() => {
    lesson.value = taught;
    caption.value = -1;
    predicted.value = null;
    working.value = false;
    policy.value = null;
    verdict.value = null;
    hints.value = 0;
    solved.value = false;
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
  const second = taught.versus && first instanceof Model ? await run(changed(taught.request, taught.versus)) : null;
  running.value = false;
  if (!(first instanceof Model)) refusal.value = first;
  else if (second && !(second instanceof Model)) refusal.value = second;
  else {
    startLesson(taught);
    open(first, second);
  }
}

/** A request with the changes of a variant. */
export function changed(asked: LaunchRequest, variant: Variant): LaunchRequest {
  const { label: _, ...parts } = variant;
  const given = Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== null));
  return { ...asked, ...given };
}

/** Opens the kernel of the task in the editor, or another one in its place; a design is no kernel, so
 * that nothing runs. */
async function startTask(taught: Lesson, source: string): Promise<void> {
  const task = taught.task!;
  if (task.design) {
    batch(() => {
      working.value = true;
      policy.value = source;
      if (matchMedia("(max-width: 900px)").matches) pane.value = "code";
    });
    return;
  }
  const asked = { ...changed(taught.request, task.launch), source };
  running.value = true;
  refusal.value = null;
  const first = await runTask(asked);
  batch(() => {
    running.value = false;
    if (!(first instanceof Model)) return void (refusal.value = first);
    working.value = true;
    verdict.value = null;
    request.value = asked;
    labels.value = [];
    open(first, null);
    showEnd();
    editing.value = true;
  });
}

/** Run a kernel of a task, which may be one that does not end. */
function runTask(asked: LaunchRequest): Promise<Model | Refusal> {
  return run({ ...asked, max_instructions: asked.max_instructions ?? 100_000 });
}

/** Judges the kernel in the editor, and shows its run: the views belong to the text beside them. */
export async function checkTask(taught: Lesson): Promise<void> {
  const asked = request.value;
  if (!asked || checking.value) return;
  checking.value = true;
  refusal.value = null;
  const designed = policy.value;
  const found = await check(taught.id, designed ?? asked.source);
  const ran = designed === null ? await runTask(asked) : null;
  batch(() => {
    checking.value = false;
    if (ran instanceof Model) {
      open(ran, null);
      showWrong();
      editing.value = true;
    }
    if ("kind" in found) return void (refusal.value = found);
    verdict.value = found;
    const shown = ran instanceof Model && ran.trace.error;
    if (found.error && !shown) refusal.value = { kind: "compile", message: found.error, errors: found.errors };
    if (found.passed) progress.value = { ...progress.value, [taught.id]: "done" };
  });
}

export function LessonPanel() {
  const taught = lesson.value;
  const shown = model.value;
  if (!taught || !shown) return null;
  const said = taught.captions[caption.value];
  const count = taught.captions.length;
  return (
    <aside class={`lesson${working.value ? " working" : finished.value ? " finished" : ""}`} aria-label="Lesson">
      <header>
        <h2>{taught.title}</h2>
        <button aria-label="Leave the lesson" title="Leave the lesson" onClick={() => (lesson.value = null)}>
          ✕
        </button>
      </header>
      {finished.value ? <Finish taught={taught} /> : said ? <Said taught={taught} shown={shown} /> : <Ask taught={taught} />}
      {film.value && !finished.value && <WatchControls />}
      {!working.value && (
        <footer>
          <button onClick={() => turnTo(caption.value - 1)} disabled={caption.value < 0} aria-label="Previous caption" title="Previous (P)">
            ‹
          </button>
          <span class="dots" role="img" aria-label={finished.value ? "Recap" : `Caption ${caption.value + 1} of ${count}`}>
            {Array.from({ length: count + 1 }, (_, index) => (
              <i key={index} class={`${index === count ? "last " : ""}${index === caption.value ? "on" : index < caption.value ? "past" : ""}`} />
            ))}
          </span>
          <button class="primary" onClick={() => turnTo(caption.value + 1)} disabled={finished.value} title="Next (N)">
            {caption.value < 0 ? "Show me" : caption.value === count - 1 ? (taught.task ? "The task" : "Recap") : "Next"}
          </button>
        </footer>
      )}
    </aside>
  );
}

function Said({ taught, shown }: { taught: Lesson; shown: Model }) {
  const said = taught.captions[caption.value]!;
  const step = resolve(shown, said.at);
  const its = other.value;
  const beside = its && said.beside ? resolve(its, said.beside) : 0;
  return (
    <div class={moving.value ? "caption moving" : "caption"} aria-live="polite" data-missing={step === null || beside === null ? "yes" : undefined}>
      <p><Prose text={said.text} before={taught.captions.slice(0, caption.value).map((one) => one.text)} /></p>
      {step === null && <p class="missing">The launch has no step that this caption's `at` describes: {described(said.at)}.</p>}
      {beside === null && <p class="missing">The other run has no step that this caption's `beside` describes: {described(said.beside!)}.</p>}
      {step !== time.value && step !== null && !moving.value && (
        <button class="back" onClick={() => showCaption(caption.value)}>
          Back to this step
        </button>
      )}
    </div>
  );
}

/** An anchor as a lesson's file writes it, without what is left out there. */
function described(anchor: Anchor): string {
  const given = Object.entries(anchor).filter(([name, value]) => value !== "" && (value !== 0 || name === "nth"));
  return given.map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ");
}

/** What was to be learned, and something to do. */
function Finish({ taught }: { taught: Lesson }) {
  const { task } = taught;
  return (
    <div class="finish">
      {!working.value && <p class="recap"><Prose text={taught.recap} /></p>}
      {task && (
        <section class="task" aria-label="Task">
          <h3>Task {progress.value[taught.id] === "done" && <span class="done">✓ done</span>}</h3>
          <p><Prose text={task.ask} /></p>
          <Ranked found={verdict.value?.ranking ?? null} />
          <Checks taught={taught} />
          <Hints taught={taught} />
          {show.value?.live ? <Work taught={taught} /> : <p class="note">To edit and check the kernel, run <code>warploom learn {taught.id}</code></p>}
        </section>
      )}
      <Next taught={taught} />
    </div>
  );
}

function Checks({ taught }: { taught: Lesson }) {
  const found = verdict.value;
  if (found) {
    const labels = taught.task!.design ? ["the design can be measured"] : taught.task!.checks.map((one) => one.label);
    const judged = found.error ? labels.map((label) => ({ label, passed: false, measured: "the run did not finish" })) : found.checks;
    return (
      <ul class="checks" aria-label="Verdict" data-passed={found.passed ? "yes" : "no"} role="list">
        {judged.map((one) => (
          <li key={one.label} class={one.passed ? "well" : "ill"}>
            <b aria-hidden="true">{one.passed ? "✓" : "✕"}</b>
            <span>
              <span class="unseen">{one.passed ? "Passed: " : "Not passed: "}</span>
              <Prose text={one.label} />
              {one.measured && <em>{one.measured}</em>}
            </span>
          </li>
        ))}
      </ul>
    );
  }
  return (
    <ul class="checks" aria-label="Requirements" role="list">
      {taught.task!.checks.map((one) => (
        <li key={one.label}>
          <b aria-hidden="true">○</b>
          <span>
            <Prose text={one.label} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Designs by their scores, the best first, with what they cost on each kernel. */
function Ranked({ found }: { found: Ranking | null }) {
  if (!found) return null;
  return (
    <>
      <p class="scored">Score: the geometric mean of {found.unit} relative to {reference(found)}; lower is better.</p>
      <div class="ranking" tabIndex={0} role="group" aria-label="Ranking">
        <table>
          <thead>
            <tr>
              <th scope="col">design</th>
              <th scope="col">score</th>
              {found.kernels.map((name) => (
                <th key={name} scope="col" translate={false}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.scores.map((one, place) => (
              <tr key={one.name} class={place === found.mine ? "mine" : ""}>
                <th scope="row">
                  {place + 1}. {one.name}
                </th>
                <td>{one.score.toFixed(3)}</td>
                {one.costs.map((cost, kernel) => (
                  <td key={kernel}>{cost.toLocaleString("en")}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** The design whose costs are the measure of the others. */
function reference(found: Ranking): string {
  return found.scores.find((one, place) => one.score === 1 && place !== found.mine)?.name ?? "the first design";
}

function Work({ taught }: { taught: Lesson }) {
  const task = taught.task!;
  const begin = task.source || taught.request.source;
  if (!working.value) {
    return (
      <p class="do work">
        <button class="primary" disabled={running.value} onClick={() => void startTask(taught, begin)}>
          {task.design ? `Write the ${task.design.part}` : "Edit the kernel"}
        </button>
      </p>
    );
  }
  return (
    <p class="do work">
      <button class="primary" disabled={checking.value} onClick={() => void checkTask(taught)}>
        {checking.value ? "Checking …" : "Check"}
      </button>
      <button onClick={() => void openLesson(taught.id)}>Back to the lesson</button>
    </p>
  );
}

function Hints({ taught }: { taught: Lesson }) {
  const task = taught.task!;
  return (
    <div class="hints">
      {task.hints.slice(0, hints.value).map((hint) => (
        <p key={hint}><Prose text={hint} /></p>
      ))}
      <p class="do">
        {hints.value < task.hints.length && <button onClick={() => (hints.value += 1)}>{hints.value ? "Another hint" : "Hint"}</button>}
        <button aria-pressed={solved.value} onClick={() => (solved.value = !solved.value)}>
          Solution
        </button>
      </p>
      {solved.value && (
        <pre class="solution" tabIndex={0} aria-label="Solution">
          {task.solution}
        </pre>
      )}
    </div>
  );
}

function Next({ taught }: { taught: Lesson }) {
  if (!taught.next) return <p class="next">This was the last lesson.</p>;
  const title = show.value?.lessons.find((one) => one.id === taught.next)?.title ?? taught.next;
  return (
    <p class="next">
      Next lesson:{" "}
      {show.value?.live ? <button onClick={() => void openLesson(taught.next)}>{title} ›</button> : show.value?.lessons.length ? <a href={`${taught.next}.html`}>{title} ›</a> : title}
    </p>
  );
}

function Ask({ taught }: { taught: Lesson }) {
  const { question } = taught;
  const given = predicted.value;
  return (
    <div class="question">
      <p><Prose text={taught.summary} /></p>
      <fieldset>
        <legend><Prose text={question.ask} /></legend>
        {question.choices.map((choice, index) => (
          <button
            key={choice}
            aria-pressed={given === index}
            class={given === null ? "" : index === question.answer ? "right" : index === given ? "wrong" : "rest"}
            onClick={() => (predicted.value = index)}
          >
            {given !== null && (index === question.answer ? "✓ " : index === given ? "✕ " : "")}
            <Prose text={choice} />
          </button>
        ))}
      </fieldset>
      {given !== null && <p class="because"><Prose text={question.because} /></p>}
    </div>
  );
}

export function Lessons() {
  if (!lessonsOpen.value) return null;
  const { lessons } = show.value!;
  const parts = [...new Set(lessons.map((one) => one.part))];
  return (
    <div class="sheet" role="dialog" aria-label="Lessons">
      <div class="head">
        <h2>Lessons</h2>
        <button aria-label="Close" onClick={() => (lessonsOpen.value = false)}>
          ✕
        </button>
      </div>
      {parts.map((part) => (
        <section key={part}>
          <h3>{part}</h3>
          <ol>
            {lessons.filter((one) => one.part === part).map((one) => (
              <li key={one.id}>
                <button class={lesson.value?.id === one.id ? "on" : ""} data-lesson={one.id} onClick={() => void openLesson(one.id)}>
                  <b>
                    {one.title} {mark(progress.value[one.id])}
                  </b>
                  <span><Prose text={one.summary} /></span>
                  {one.aim && <span class="aim">{one.aim}</span>}
                  {one.needs.length > 0 && <span class="aim">Prerequisites: {one.needs.map((name) => lessons.find((other) => other.id === name)?.title ?? name).join(" · ")}</span>}
                </button>
              </li>
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

function mark(state: string | undefined) {
  if (!state) return null;
  return <span class={`mark ${state}`}>{state === "done" ? "✓ done" : "read"}</span>;
}
