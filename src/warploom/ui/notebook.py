"""The view in a notebook: a frame with the page in it, or a widget (extra `notebook`).

wl.show(trace)                 in Jupyter, VS Code, Colab: shows itself
wl.show(trace).widget()        an anywidget, for what wants one (marimo, dashboards)
wl.show(trace).save("a.html")  the same as a file
"""

from __future__ import annotations

import base64
import gzip
import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from warploom.core.errors import WarploomError
from warploom.core.options import checked, nearest
from warploom.core.output_files import write_text
from warploom.observe.trace import Trace
from warploom.ui.lesson_rules import VIEWS
from warploom.ui.page import export
from warploom.ui.shows import exported_show

HEIGHT = 760

FRAME_MODULE = """
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.title = "Warploom";
    frame.sandbox = "allow-scripts";
    frame.style.cssText = "width: 100%; border: 0;";
    const fill = () => {
      frame.style.height = `${model.get("height")}px`;
      frame.srcdoc = model.get("page");
    };
    model.on("change:page", fill);
    model.on("change:height", fill);
    fill();
    el.append(frame);
  },
};
"""


@dataclass(frozen=True)
class Shown:
    """One trace, or two to compare, as a page; `labels` are what they are called. `place` is where
    the page opens (`ui.schema.Show`)."""

    traces: tuple[Trace, ...]
    labels: tuple[str, ...]
    height: int = HEIGHT
    place: str = ""

    @property
    def page(self) -> str:
        """Returns the page, as one file."""
        title = " and ".join(self.labels)
        shown = replace(exported_show(title, self.labels), place=self.place)
        return export(shown, [t.to_bytes() for t in self.traces])

    def save(self, path: str | Path) -> None:
        """Writes the page to a file."""
        write_text(path, self.page)

    def widget(self) -> Any:
        """Returns the page as an anywidget. Raises WarploomError where anywidget is not
        installed."""
        try:
            import anywidget
            import traitlets
        except ImportError:
            raise WarploomError(
                'a widget needs anywidget: `pip install "warploom[notebook]"`'
            ) from None
        kind = type(
            "WarpView",
            (anywidget.AnyWidget,),
            {
                "_esm": FRAME_MODULE,
                "page": traitlets.Unicode().tag(sync=True),
                "height": traitlets.Int().tag(sync=True),
            },
        )
        return kind(page=self.page, height=self.height)

    def _repr_html_(self) -> str:
        """Returns the HTML that a notebook shows: the page in a sandboxed frame of its own."""
        page = html.escape(unpacking(self.page), quote=True)
        style = f"width: 100%; height: {self.height}px; border: 0"
        frame = f'title="Warploom" sandbox="allow-scripts" style="{style}"'
        return f'<iframe {frame} srcdoc="{page}"></iframe>'


LOADER = """<!doctype html><title>Warploom</title><script>
(async () => {
  const packed = Uint8Array.from(atob("%s"), (one) => one.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const page = await new Response(stream).text();
  document.open();
  document.write(page);
  document.close();
})();
</script>"""


def unpacking(page: str) -> str:
    """Returns a page that unpacks another one and becomes it: two fifths of the size, which a
    notebook keeps for each output."""
    return LOADER % base64.b64encode(gzip.compress(page.encode(), mtime=0)).decode()


@checked("show(...)")
def show(
    *traces: Trace,
    labels: tuple[str, ...] = (),
    height: int = HEIGHT,
    step: int = 0,
    warp: int = 0,
    view: str = "",
) -> Shown:
    """Shows a trace in a notebook, or two side by side, at a step of the launch, a warp of the
    trace and a view ("memory", "data", "machine", "numbers", "time", "warp" or "code"). Raises
    WarploomError for more traces, and for an unknown view."""
    if view not in ("", *VIEWS):
        raise WarploomError(f"there is no view {view!r}. {nearest(view, VIEWS)}")
    if not 1 <= len(traces) <= 2:
        raise WarploomError(
            f"pass one trace, or two traces to show side by side, not {len(traces)}"
        )
    named = labels or tuple(f"{t.launch.name} on {t.device.title}" for t in traces)
    place = f"step={step}&warp={warp}" + (f"&view={view}" if view else "")
    return Shown(traces, named, height, place if step or warp or view else "")
