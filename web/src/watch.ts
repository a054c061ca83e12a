// Watching a lesson or an explainer: the time of the film that is shown, and what the page shows then.

import { batch, computed, effect, signal } from "@preact/signals";
import { resolve, warpOf } from "./anchors.ts";
import { finished, showCaption, working } from "./captions.ts";
import { explainerFilm, lessonFilm, shotAt, type Film, type Scene } from "./film.ts";
import type { Model } from "./model.ts";
import type { Stop } from "./schema.ts";
import { kept } from "./settings.ts";
import { caption, goTo, lesson, model, open, pane, playing, predicted, show, time, warp, type Pane } from "./state.ts";

/** How often the film's time moves on, in milliseconds, and how far at most: a page that was in the
 * background goes on where it was. */
const TICK = 50;
const LATEST = 250;

export const watching = signal(false);
/** The cut of the lesson, of 60 seconds at most, is watched. */
export const cut = signal(false);
/** Seconds since the film's beginning. */
export const elapsed = signal(0);
/** Captions are also spoken. */
export const spoken = kept<boolean>("spoken", false);
/** The traces of an explainer. */
export const models = signal<readonly Model[]>([]);
/** The question was neither answered nor skipped, so the film waits. */
export const waiting = signal(false);
/** The film is taken frame by frame, so nothing moves by itself. */
const taken = signal(false);

const less = matchMedia("(prefers-reduced-motion: reduce)");
const still = signal(less.matches);
less.addEventListener("change", () => (still.value = less.matches));

export const film = computed<Film | null>(() => {
  const without = still.value && !taken.value;
  const explained = show.value?.explainer;
  if (explained) return models.value.length === explained.names.length ? explainerFilm(explained, models.value, without) : null;
  const [taught, shown] = [lesson.value, model.value];
  if (!taught || !shown || working.value || taught.captions.length === 0) return null;
  return lessonFilm(taught, shown, cut.value, without);
});

/** The scene of an explainer or a lesson that is shown. */
export const scene = computed<Scene | null>(() => {
  const shown = film.value;
  return shown ? shown.scenes[shown.shots[shotAt(shown, elapsed.value)]!.scene]! : null;
});

/** The stop of an explainer that is shown. */
export const stop = computed<Stop | null>(() => show.value?.explainer?.stops[scene.value?.number ?? 0] ?? null);

/** The steps that lead to the next scene are playing. */
export const moving = computed(() => scene.value !== null && elapsed.value >= scene.value.moves && watching.value);

// ---- what a moment shows -----------------------------------------------------------------------

let applying = false;
let shownShot = -1;

/** Show the film at a time. */
export function seek(seconds: number): void {
  const shown = film.value;
  if (!shown) return;
  applying = true;
  batch(() => {
    elapsed.value = Math.max(0, Math.min(seconds, shown.seconds));
    waiting.value = false;
    const number = shotAt(shown, elapsed.value);
    if (number !== shownShot) apply(shown, number);
    shownShot = number;
  });
  applying = false;
}

function apply(shown: Film, number: number): void {
  const shot = shown.shots[number]!;
  const now = shown.scenes[shot.scene]!;
  if (now.kind === "stop") applyStop(now.number);
  else if (shot.step === null || caption.value !== now.number) showScene(now);
  if (shot.step !== null) goTo(shot.step);
}

/** Show a scene of a lesson; a view that an earlier caption chose stays. */
function showScene(now: Scene): void {
  const before = lesson.value!.captions.slice(0, now.number).filter((said) => said.look).at(-1);
  if (before && now.kind === "caption") pane.value = before.look as Pane;
  showCaption(now.number);
}

function applyStop(number: number): void {
  const shown = show.value!.explainer!.stops[number]!;
  const its = models.value[shown.trace]!;
  if (model.value !== its) open(its, null);
  const step = resolve(its, shown.at);
  warp.value = Math.max(0, warpOf(its, shown.at));
  if (step !== null) goTo(step);
  if (shown.look) pane.value = shown.look as Pane;
}

// ---- playing ---------------------------------------------------------------------------------

/** Watch, from the caption that is shown; or pause. */
export function toggleWatching(): void {
  const shown = film.value;
  if (!shown) return;
  if (watching.value) return void (watching.value = false);
  if (elapsed.value >= shown.seconds || finished.value) start(0);
  else if (away()) start(sceneOf(shown, caption.value)?.start ?? 0);
  watching.value = true;
}

export const plays = computed(() => watching.value || playing.value);

/** Play or pause: in a film with its captions, else step by step. */
export function togglePlaying(): void {
  const told = film.value && (show.value?.explainer || !finished.value);
  if (playing.value || !told) playing.value = !playing.value;
  else toggleWatching();
}

/** The page shows something else than the film at its time. */
function away(): boolean {
  return !show.value?.explainer && (scene.value?.number !== caption.value || shownShot < 0);
}

function sceneOf(shown: Film, number: number): Scene | undefined {
  return shown.scenes.find((one) => one.number === number);
}

function start(seconds: number): void {
  shownShot = -1;
  seek(seconds);
}

/** Show another caption, or another stop; a film goes on from there. */
export function turnTo(number: number): void {
  const shown = film.value;
  const next = shown && sceneOf(shown, number);
  if (show.value?.explainer || watching.value) return void (next && start(next.start));
  showCaption(number);
}

/** The number of the caption or stop that is shown. */
export const place = computed(() => (show.value?.explainer ? (scene.value?.number ?? 0) : caption.value));

/** Go on without an answer to the question. */
export function skipQuestion(): void {
  const after = film.value?.scenes.find((one) => one.kind === "caption");
  if (!after) return;
  start(after.start);
  watching.value = true;
}

/** Whether the whole lesson or its cut is watched. */
export function toggleCut(): void {
  cut.value = !cut.value;
  start(film.value?.scenes.find((one) => one.number === caption.value)?.start ?? 0);
}

/** Keeps the film's time; `onEnd` is called where it ends. */
export function startWatching(onEnd: () => void): void {
  for (const kept of [rewind, pauseWhenTaken, speakScene, () => play(onEnd)]) effect(kept);
}

function play(onEnd: () => void): (() => void) | void {
  if (!watching.value || taken.value) return;
  let before = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (tick(Math.min(now - before, LATEST) / 1000)) onEnd();
    before = now;
  }, TICK);
  return () => clearInterval(timer);
}

/** Moves the film's time on; returns whether that was its end. */
function tick(seconds: number): boolean {
  const [shown, now] = [film.peek(), scene.peek()];
  if (!shown || !now) return (watching.value = false);
  const next = elapsed.peek() + seconds;
  if (now.kind === "question" && predicted.peek() !== null) seek(now.end);
  else if (next >= now.moves && !spokenToTheEnd(now, seconds)) return false;
  else if (next < now.end) seek(next);
  else if (now.kind === "question") waiting.value = true;
  else seek(now.end);
  if (elapsed.peek() < shown.seconds) return false;
  watching.value = false;
  return true;
}

/** A viewer who goes to another step looks for himself. */
function pauseWhenTaken(): void {
  time.value;
  warp.value;
  if (!applying) watching.value = false;
}

/** Another lesson begins at its beginning. */
function rewind(): void {
  lesson.value;
  if (show.peek()?.explainer) return;
  elapsed.value = 0;
  shownShot = -1;
  watching.value = false;
  waiting.value = false;
}

// ---- speech ----------------------------------------------------------------------------------

export const canSpeak = "speechSynthesis" in window;

let saying: Scene | null = null;
/** Seconds for which the film has waited for the voice. */
let held = 0;

/** Speaks the text of each scene once, while it is watched. */
function speakScene(): void {
  const [now, on] = [scene.value, watching.value && spoken.value];
  if (!canSpeak || (now === saying && on)) return;
  if (saying || !on) speechSynthesis.cancel();
  saying = on ? now : null;
  held = 0;
  if (!saying) return;
  const said = new SpeechSynthesisUtterance(saying.text.replaceAll("`", ""));
  said.lang = "en";
  speechSynthesis.speak(said);
}

/** Whether a scene can move on: a voice may take as long again as reading does. */
function spokenToTheEnd(now: Scene, seconds: number): boolean {
  if (saying !== now || !speechSynthesis.speaking || held >= now.moves - now.start) return true;
  held += seconds;
  return false;
}

// ---- frames ----------------------------------------------------------------------------------

/** A shot of the film, as an export takes it. */
interface Frame {
  readonly seconds: number;
  readonly kind: string;
  readonly number: number;
  readonly text: string;
  /** The steps that lead to the next scene are playing. */
  readonly moves: boolean;
}

/** For exports: the film's shots, and the page at one of them. */
export const frames = {
  begin(short: boolean): readonly Frame[] {
    taken.value = true;
    cut.value = short;
    document.documentElement.toggleAttribute("data-film", true);
    const shown = film.value;
    if (!shown) return [];
    return shown.shots.map((shot) => {
      const { kind, number, text } = shown.scenes[shot.scene]!;
      return { seconds: shot.end - shot.start, kind, number, text, moves: shot.step !== null };
    });
  },
  show(number: number): void {
    const shown = film.value!;
    const shot = shown.shots[number]!;
    if (shown.scenes[shot.scene]!.kind === "answer") predicted.value = lesson.value!.question.answer;
    watching.value = true;
    seek(shot.start);
    document.documentElement.style.setProperty("--played", String(shot.end / shown.seconds));
  },
};
