// Light or dark: the system's choice, until the button is pressed.

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen: string | null = null;

function apply(): void {
  root.dataset["theme"] = chosen ?? (system.matches ? "dark" : "light");
}

/** Show the page as the system is, now and when that changes. */
export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  // Paper is light.
  addEventListener("beforeprint", () => (root.dataset["theme"] = "light"));
  addEventListener("afterprint", apply);
}

export function changeTheme(): void {
  chosen = root.dataset["theme"] === "dark" ? "light" : "dark";
  apply();
}
