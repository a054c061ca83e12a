// Texts of lessons: code between backticks, and words of the glossary that say what they mean.

import { GLOSSARY } from "../schema.ts";

/** A text; what stands between backticks is code. In a text of `texts`, each word of the glossary
 * that none of those before it has explains itself, once. */
export function Prose({ text, before }: { text: string; before?: readonly string[] }) {
  const known = new Set(before ? [...before.flatMap(termsOf)] : Object.keys(MEANINGS));
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : <Words key={index} text={part} known={known} />))}</>;
}

const MEANINGS: Readonly<Record<string, string>> = Object.fromEntries(Object.entries(GLOSSARY).map(([term, meaning]) => [term.toLowerCase(), meaning]));

const longestFirst = Object.keys(MEANINGS).sort((one, other) => other.length - one.length);
const TERM = new RegExp(`(?<![\\w-])(${longestFirst.join("|")})(?:s|es)?(?![\\w-])`, "gi");

function termsOf(text: string): string[] {
  return [...text.matchAll(TERM)].map((found) => found[1]!.toLowerCase());
}

/** A text with the terms explained that are not `known`; they are, from then on. */
function Words({ text, known }: { text: string; known: Set<string> }) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TERM)) {
    const term = found[1]!.toLowerCase();
    if (known.has(term)) continue;
    known.add(term);
    parts.push(text.slice(end, found.index), <Term key={term} text={found[0]} meaning={MEANINGS[term]!} />);
    end = found.index + found[0].length;
  }
  return <>{[...parts, text.slice(end)]}</>;
}

function Term({ text, meaning }: { text: string; meaning: string }) {
  return (
    <dfn tabIndex={0} data-tip={meaning} aria-description={meaning}>
      {text}
    </dfn>
  );
}
