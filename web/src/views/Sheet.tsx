// What is only printed: a lesson as a sheet for a class, below the step that the page shows.

import { resolve } from "../anchors.ts";
import { lesson, model } from "../state.ts";
import { Prose } from "./Prose.tsx";

export function Sheet() {
  const [taught, shown] = [lesson.value, model.value];
  if (!taught || !shown) return null;
  const { question, task } = taught;
  return (
    <section class="printed" aria-hidden="true">
      <h2>{taught.title}</h2>
      {taught.aim && <p>Aim: {taught.aim}</p>}
      <p>
        <Prose text={taught.summary} />
      </p>
      <h3>
        <Prose text={question.ask} />
      </h3>
      <ul>
        {question.choices.map((choice) => (
          <li key={choice}>
            ☐ <Prose text={choice} />
          </li>
        ))}
      </ul>
      <h3>What happens</h3>
      <ol>
        {taught.captions.map((said) => {
          const step = resolve(shown, said.at);
          return (
            <li key={said.text}>
              <Prose text={said.text} /> {step !== null && <em>(step {(step + 1).toLocaleString()} of the launch)</em>}
            </li>
          );
        })}
      </ol>
      <p>
        <Prose text={taught.recap} />
      </p>
      {task && (
        <>
          <h3>Task</h3>
          <p>
            <Prose text={task.ask} />
          </p>
          <ul>
            {task.checks.map((check) => (
              <li key={check.label}>
                ☐ <Prose text={check.label} />
              </li>
            ))}
          </ul>
          <pre>{task.source || taught.request.source}</pre>
        </>
      )}
    </section>
  );
}
