// The card that explains what is under the pointer or has the focus.

export function startTips(): void {
  const card = document.createElement("div");
  card.className = "tip";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  document.body.append(card);

  function place(target: Element): void {
    const [text = "", source = ""] = (target.getAttribute("data-tip") ?? "").split("\n");
    const where = document.createElement("cite");
    where.textContent = source;
    card.replaceChildren(text, where);
    card.hidden = false;
    const around = target.getBoundingClientRect();
    const own = card.getBoundingClientRect();
    const left = Math.min(Math.max(8, around.left), innerWidth - own.width - 8);
    const below = around.bottom + 8 + own.height < innerHeight;
    card.style.left = `${left}px`;
    card.style.top = `${below ? around.bottom + 6 : Math.max(8, around.top - own.height - 6)}px`;
  }

  const find = (event: Event) => (event.target as Element | null)?.closest?.("[data-tip]") ?? null;
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const target = find(event);
      if (target) place(target);
      else card.hidden = true;
    });
  }
  document.addEventListener("focusout", () => (card.hidden = true));
  document.addEventListener("keydown", (event) => event.key === "Escape" && (card.hidden = true));
}
