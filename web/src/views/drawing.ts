// What tracks over cycles share: a canvas that is drawn again when anything that it shows changes,
// and a pen in its pixels.

import { effect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hideTip } from "../tips.ts";

/** Draws when a signal that `draw` reads, the size or the theme changes, as long as `shown` stays. */
export function useDrawing(
  place: { readonly current: HTMLCanvasElement | null },
  draw: (canvas: HTMLCanvasElement) => void,
  shown: unknown,
): void {
  useEffect(() => {
    const canvas = place.current!; // not read again: it is gone before the last change is drawn
    const again = () => draw(canvas);
    const stop = effect(again);
    const watch = new ResizeObserver(again);
    watch.observe(canvas);
    const themed = new MutationObserver(again);
    themed.observe(document.documentElement, { attributes: true });
    return () => {
      stop();
      watch.disconnect();
      themed.disconnect();
      hideTip();
    };
  }, [shown]);
}

/** Gives a canvas the size of its box; returns that box, a pen and the theme's colours by name. */
export function penOf(canvas: HTMLCanvasElement): {
  box: DOMRect;
  pen: CanvasRenderingContext2D;
  colour: (name: string) => string;
} {
  const box = canvas.getBoundingClientRect();
  canvas.width = Math.max(1, Math.round(box.width * devicePixelRatio));
  canvas.height = Math.max(1, Math.round(box.height * devicePixelRatio));
  const pen = canvas.getContext("2d")!;
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  const style = getComputedStyle(document.documentElement);
  return { box, pen, colour: (name) => style.getPropertyValue(name).trim() };
}
