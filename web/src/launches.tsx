// The launches of a program, each with a trace of its own: which is shown, and the choice among them.

import { batch } from "@preact/signals";
import { readTrace } from "./load.ts";
import { open, refusal, running, show, shownLaunch, showWrong } from "./state.ts";

/** Show a launch of the program from its start, once its trace is there. */
export async function showLaunch(number: number): Promise<void> {
  const given = show.value;
  if (!given || running.value || number === shownLaunch.value || !given.launches[number]) return;
  running.value = true;
  refusal.value = null;
  try {
    const chosen = await readTrace(number);
    batch(() => {
      shownLaunch.value = number;
      open(chosen, null);
      showWrong();
    });
  } catch (error) {
    refusal.value = { kind: "launch", message: error instanceof Error ? error.message : String(error), errors: [] };
  } finally {
    running.value = false;
  }
}

/** The choice, where a program has several launches; it stands where else the launch's name is. */
export function LaunchChoice() {
  const names = show.value!.launches;
  return (
    <select class="launches" aria-label="Launch of the program" title="Choose a launch of the program" value={shownLaunch.value} disabled={running.value} onChange={(event) => void showLaunch(Number(event.currentTarget.value))}>
      {names.map((name, number) => (
        <option key={name} value={number}>
          {name}
        </option>
      ))}
    </select>
  );
}
