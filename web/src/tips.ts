// The card that explains what is under the pointer or has the focus.

import { say } from "./words.ts";

const card = document.createElement("div");
card.className = "tip";
card.setAttribute("role", "tooltip");
card.hidden = true;

/** Say something beside what is around it. */
function showTip(text: string, source: string, around: { readonly left: number; readonly top: number; readonly bottom: number }): void {
  const where = document.createElement("cite");
  where.textContent = source;
  card.replaceChildren(text, where);
  card.hidden = false;
  const own = card.getBoundingClientRect();
  const left = Math.min(Math.max(8, around.left), innerWidth - own.width - 8);
  const below = around.bottom + 8 + own.height < innerHeight;
  card.style.left = `${left}px`;
  card.style.top = `${below ? around.bottom + 6 : Math.max(8, around.top - own.height - 6)}px`;
}

/** Say something of a place in a picture. */
export function tellAt(x: number, y: number, text: string, source: string): void {
  showTip(say(text), source, { left: x + 10, top: y - 6, bottom: y + 10 });
}

export function hideTip(): void {
  card.hidden = true;
}

export function startTips(): void {
  document.body.append(card);

  function place(target: Element): void {
    const [text = "", source = ""] = (target.getAttribute("data-tip") ?? "").split("\n");
    showTip(text, source, target.getBoundingClientRect());
  }

  const find = (event: Event) => (event.target as Element | null)?.closest?.("[data-tip]") ?? null;
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const target = find(event);
      if (target) place(target);
      else hideTip();
    });
  }
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
}
