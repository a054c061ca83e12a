// Opens the page: reads what there is to show, and begins.

import { render } from "preact";
import { App } from "./app.tsx";
import { startKeys } from "./keys.ts";
import { progress } from "./captions.ts";
import { openExplorable } from "./explore.ts";
import { openLesson, startLesson } from "./lesson.tsx";
import { followLink, keepLink, linkedLaunch, linkedValues, onlyPane } from "./link.ts";
import { readKernels } from "./kernels.ts";
import { readShow, readTrace } from "./load.ts";
import type { Model } from "./model.ts";
import { labels, lesson, modelled, open, pane, request, show, shownLaunch, showWrong } from "./state.ts";
import { startTheme } from "./theme.ts";
import { startTips } from "./tips.ts";
import { cut, frames, models, seek, startWatching, watching } from "./watch.ts";
import "uplot/dist/uPlot.min.css";
import "./style.css";

async function begin(): Promise<void> {
  const given = readShow();
  show.value = given;
  document.title = `${given.title} · Warploom`;
  const root = document.getElementById("app")!;
  startTheme();
  render(<App />, root);
  startTips();
  startKeys();
  try {
    shownLaunch.value = linkedLaunch();
    const first = await readTrace(shownLaunch.value);
    const second = given.traces > 1 && !given.explainer && !given.explorable ? await readTrace(1) : null;
    request.value = given.request;
    if (given.machine) await readKernels();
    if (given.lesson) startLesson(given.lesson);
    else labels.value = given.labels;
    progress.value = given.progress;
    open(first, second);
    startWatching(() => void nextOfAll());
    if (given.explainer) await openExplainer(first);
    else if (given.explorable) await openExplorable(linkedValues());
    else if (!given.lesson) {
      if (modelled.value) pane.value = "time";
      showWrong();
    }
    followLink();
    if (onlyPane) pane.value = onlyPane;
    keepLink();
    cut.value = given.watch === "cut";
    watching.value = given.watch !== "" && document.visibilityState === "visible";
  } catch (error) {
    root.textContent = `The trace cannot be shown: ${String(error)}`;
  }
}

/** Reads the other traces of an explainer, and shows its first stop. */
async function openExplainer(first: Model): Promise<void> {
  const { names } = show.value!.explainer!;
  const others = names.slice(1).map((_, number) => readTrace(number + 1));
  models.value = [first, ...(await Promise.all(others))];
  seek(0);
}

/** Goes on with the lesson after this one, where all of them are watched. */
async function nextOfAll(): Promise<void> {
  const next = lesson.value?.next;
  if (show.value?.watch !== "all" || !next) return;
  await openLesson(next);
  watching.value = true;
}

Object.assign(window, { warploomFilm: frames });
void begin();
