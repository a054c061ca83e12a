// The words of the source's language: the page is written in CUDA's, and shows an OpenCL kernel in
// OpenCL's. Whatever is rendered passes here, but for elements with translate={false}: names and code.

import { options, type VNode } from "preact";
import { CODE_PHRASES, PHRASES } from "./schema.ts";

type Translate = (text: string) => string;

/** Attributes that are read or shown. */
const SAID = ["aria-label", "data-tip", "title", "placeholder"];

const CODE = ["code", "pre"];

let current: Translate | null = null;

/** Show everything that is rendered from now on in these terms, such as "opencl". */
export function speak(terms: string): void {
  current = translator(terms);
}

/** A text of the page in the terms of the source. */
export function say(text: string): string {
  return current ? current(text) : text;
}

/** The first letters of a word in the terms of the source: "b" for "block", "wg" for "work-group". */
export function initials(word: string): string {
  return say(word)
    .split("-")
    .map((part) => part[0])
    .join("");
}

/** Translates as report/terms.py does; null where there is nothing to translate. */
function translator(terms: string): Translate | null {
  const phrases = PHRASES[terms];
  if (!phrases) return null;
  const known = Object.keys(phrases).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\w.-])(${known.join("|")})(?![\\w(]|\\.\\w)`, "gi");
  const code = Object.entries(CODE_PHRASES[terms] ?? {});
  return (text) => code.reduce((made, [from, to]) => made.replaceAll(from, to), text.replace(pattern, (found) => like(found, phrases[found.toLowerCase()]!)));
}

/** The word with the capitals of what it stands for. */
function like(found: string, word: string): string {
  return /^[A-Z]/.test(found) ? word.replace(/(^| )[a-z]/g, (letter) => letter.toUpperCase()) : word;
}

const earlier = options.vnode;
options.vnode = (vnode: VNode): void => {
  earlier?.(vnode);
  const props = vnode.props as Record<string, unknown>;
  if (!current || typeof vnode.type !== "string" || props["translate"] === false) return;
  for (const name of SAID) {
    const text = props[name];
    if (typeof text === "string") {
      // What a quotation mark is in is the title of a source.
      props[name] = text.split("\n").map((line) => (line.includes("“") ? line : say(line))).join("\n");
    }
  }
  if (!CODE.includes(vnode.type)) props["children"] = translated(props["children"], current);
};

function translated(children: unknown, translate: Translate): unknown {
  if (typeof children === "string") return translate(children);
  return Array.isArray(children) ? children.map((child) => (typeof child === "string" ? translate(child) : child)) : children;
}
