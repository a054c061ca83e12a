// Opens the page: reads what there is to show, and begins.

import { render } from "preact";
import { App } from "./app.tsx";
import { startKeys } from "./keys.ts";
import { progress, startLesson } from "./lesson.tsx";
import { followLink, keepLink, linkedLaunch } from "./link.ts";
import { readShow, readTrace } from "./load.ts";
import { labels, modelled, open, pane, request, show, shownLaunch, showWrong } from "./state.ts";
import { startTheme } from "./theme.ts";
import { startTips } from "./tips.ts";
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
    const first = await readTrace(shownLaunch.value, given.live);
    const second = given.traces > 1 ? await readTrace(1, given.live) : null;
    request.value = given.request;
    if (given.lesson) startLesson(given.lesson);
    else labels.value = given.labels;
    progress.value = given.progress;
    open(first, second);
    if (!given.lesson) {
      if (modelled.value) pane.value = "time";
      showWrong();
      followLink();
    }
    keepLink();
  } catch (error) {
    root.textContent = `The trace cannot be shown: ${String(error)}`;
  }
}

void begin();
