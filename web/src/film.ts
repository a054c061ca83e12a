// A film of a lesson: which caption stands beside which step, and for how long. It is a function of
// the texts and the traces alone, so that the page plays it, and an export takes it frame by frame.

import { resolve, warpOf } from "./anchors.ts";
import type { Model } from "./model.ts";
import type { Anchor, Caption, Explainer, Lesson } from "./schema.ts";

/** How fast captions are read. Ofcom and the BBC ask for 160 to 180 words a minute at most in
 * subtitles, beside a picture that is looked at as well. */
export const WORDS_A_MINUTE = 160;
/** Seconds for a look at the picture, beside the time to read. */
const LOOK = 0.7;
/** Seconds that each of the steps between two captions is shown, and how many are shown at most. */
const STEP = 0.15;
const MOST_STEPS = 10;
/** Seconds that a cut of a lesson takes at most. */
export const LONGEST_CUT = 60;

export type Kind = "question" | "answer" | "caption" | "recap" | "stop";

/** A text and the time that it stands, in seconds from the film's beginning. */
export interface Scene {
  readonly kind: Kind;
  /** The number of the caption or of the stop; -1 for the question. */
  readonly number: number;
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** When the steps that lead to the next scene begin to play. */
  readonly moves: number;
}

/** What the page shows without a change: a scene at its own step, or at one on the way to the next. */
export interface Shot {
  readonly scene: number;
  readonly start: number;
  readonly end: number;
  /** A step on the way to the next scene; null for the scene's own. */
  readonly step: number | null;
}

export interface Film {
  readonly scenes: readonly Scene[];
  readonly shots: readonly Shot[];
  readonly seconds: number;
}

/** A text that a film is made of, before it has a time. */
interface Part {
  readonly kind: Kind;
  readonly number: number;
  readonly text: string;
  readonly model: Model;
  readonly at: Anchor | null;
}

/** The seconds that a text takes to be read. */
export function secondsToRead(text: string): number {
  const words = text.split(/\s+/).filter((word) => /\w/.test(word)).length;
  return (60 * words) / WORDS_A_MINUTE;
}

/** The film of a lesson: its question, the answer, each caption, the recap. A `cut` has captions
 * alone, and the recap where there is time for it. */
export function lessonFilm(lesson: Lesson, model: Model, cut: boolean, still: boolean): Film {
  const captions = lesson.captions.map((said, number) => captionPart(said, number, model));
  const recap: Part = { kind: "recap", number: captions.length, text: lesson.recap, model, at: null };
  if (cut) return shortened(captions, recap, still);
  const { question } = lesson;
  const asked = [lesson.summary, question.ask, ...question.choices].join(" ");
  const before: Part[] = [
    { kind: "question", number: -1, text: asked, model, at: null },
    { kind: "answer", number: -1, text: question.because, model, at: null },
  ];
  return timed([...before, ...captions, recap], still);
}

function captionPart(said: Caption, number: number, model: Model): Part {
  return { kind: "caption", number, text: said.text, model, at: said.at };
}

/** The film that fits: with the recap if possible, else without the longest captions of those
 * between the first and the last. */
function shortened(captions: readonly Part[], recap: Part, still: boolean): Film {
  const whole = timed([...captions, recap], still);
  if (whole.seconds <= LONGEST_CUT) return whole;
  let kept = [...captions];
  for (;;) {
    const film = timed(kept, still);
    if (film.seconds <= LONGEST_CUT || kept.length <= 2) return film;
    const inner = kept.slice(1, -1).map((part) => part.text.length);
    const longest = 1 + inner.indexOf(Math.max(...inner));
    kept = kept.filter((_, index) => index !== longest);
  }
}

/** The film of an explainer, whose stops are in several traces. */
export function explainerFilm(explainer: Explainer, models: readonly Model[], still: boolean): Film {
  const parts = explainer.stops.map((stop, number): Part => {
    return { kind: "stop", number, text: stop.text, model: models[stop.trace]!, at: stop.at };
  });
  return timed(parts, still);
}

/** Gives each part its time. `still`: without the steps between. */
function timed(parts: readonly Part[], still: boolean): Film {
  const scenes: Scene[] = [];
  const shots: Shot[] = [];
  let now = 0;
  parts.forEach((part, index) => {
    const start = now;
    const moves = start + secondsToRead(part.text) + LOOK;
    shots.push({ scene: index, start, end: moves, step: null });
    now = moves;
    for (const step of still ? [] : between(part, parts[index + 1])) {
      shots.push({ scene: index, start: now, end: now + STEP, step });
      now += STEP;
    }
    scenes.push({ kind: part.kind, number: part.number, text: part.text, start, end: now, moves });
  });
  return { scenes, shots, seconds: now };
}

/** The steps of one warp from the step of a part to that of the next one, evenly chosen. */
function between(part: Part, next: Part | undefined): readonly number[] {
  if (!part.at || !next?.at || part.model !== next.model) return [];
  const warp = warpOf(part.model, part.at);
  if (warp !== warpOf(next.model, next.at)) return [];
  const [from, to] = [resolve(part.model, part.at), resolve(next.model, next.at)];
  if (from === null || to === null || from >= to) return [];
  const steps = [...part.model.stepsOf(warp)].filter((step) => step > from && step < to);
  if (steps.length <= MOST_STEPS) return steps;
  return Array.from({ length: MOST_STEPS }, (_, index) => steps[Math.floor((index * steps.length) / MOST_STEPS)]!);
}

/** The number of the shot at a time. */
export function shotAt(film: Film, seconds: number): number {
  const found = film.shots.findIndex((shot) => seconds < shot.end);
  return found < 0 ? film.shots.length - 1 : found;
}
