// What the page keeps from one visit to the next, where the browser lets it.

import { effect, signal, type Signal } from "@preact/signals";

/** A signal whose value is kept under that name. */
export function kept<T>(name: string, first: T): Signal<T> {
  const key = `warploom.${name}`;
  const found = signal<T>(first);
  try {
    const before = localStorage.getItem(key);
    if (before !== null) found.value = JSON.parse(before) as T;
    effect(() => localStorage.setItem(key, JSON.stringify(found.value)));
  } catch {
    // A frame of another origin than its page, as in a notebook, may keep nothing.
  }
  return found;
}
