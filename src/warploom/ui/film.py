"""Writes a film of a page as a video or a GIF: each of its shots is drawn once by Chromium, and
ffmpeg puts them together. Which shots there are, and how long they last, is the page's
(`web/src/film.ts`), so the same page gives the same frames on any computer's clock.
"""

from __future__ import annotations

import dataclasses
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from warploom.core.errors import WarploomError
from warploom.core.output_files import write_bytes
from warploom.ui.chromium import Tab, opened
from warploom.ui.installed import find_installed
from warploom.ui.narration import Spoken, narrated
from warploom.ui.page import Traces, export
from warploom.ui.schema import CUT, Show

CODECS = {
    ".webm": ("-c:v", "libvpx-vp9", "-crf", "32", "-b:v", "0", "-cpu-used", "5", "-threads", "1"),
    ".mp4": ("-c:v", "libx264", "-crf", "20", "-threads", "1", "-movflags", "+faststart"),
}
"""Encoders by the suffix of a video: settings that do not depend on the number of cores."""

FRAMES_PER_SECOND = "20/3"
"""A frame for each step that the film plays (0.15 s, `STEP` of `web/src/film.ts`)."""

REPRODUCIBLE = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-map_metadata", "-1")

CONSTANT_RATE = f"fps={FRAMES_PER_SECOND}"
"""Repeats each picture until the next one. Without this filter, ffmpeg ends a film soon after its
last picture begins, since -t removes the picture that marks the end."""

PALETTE = "split[a][b];[a]palettegen=max_colors=64:stats_mode=full[p];[b][p]paletteuse=dither=none"
"""One palette for all frames, without dithering: flat areas stay flat, and the file small."""


@dataclass(frozen=True)
class FilmSize:
    """The size of a film's frames, in pixels, and the colors: "light" or "dark"."""

    width: int = 1280
    height: int = 720
    scheme: str = "light"


VIDEO_SIZE, GIF_SIZE = FilmSize(), FilmSize(960, 600)


def find_ffmpeg() -> str:
    """Returns the path of ffmpeg. Raises WarploomError where it is not installed."""
    return find_installed("a video", "ffmpeg", "ffmpeg")


def check_video_name(target: Path) -> None:
    """Raises WarploomError for a file whose suffix names no video format."""
    if target.suffix not in CODECS:
        raise WarploomError(f"{target}: the name of a video must end in {' or '.join(CODECS)}")


def write_video(
    target: Path,
    show: Show,
    traces: Traces,
    size: FilmSize = VIDEO_SIZE,
    *,
    spoken: bool = False,
) -> None:
    """Writes the film that a page plays, as the suffix of the file says; `spoken`: with a voice
    that says the captions. Raises WarploomError where Chromium, ffmpeg or the voice are missing."""
    check_video_name(target)
    frames = ("-vf", CONSTANT_RATE, "-pix_fmt", "yuv420p")
    _write(target, show, traces, size, (*frames, *CODECS[target.suffix]), spoken=spoken)


def write_gif(target: Path, show: Show, traces: Traces, size: FilmSize = GIF_SIZE) -> None:
    """Writes the film that a page plays as a GIF that repeats. Raises WarploomError where Chromium
    or ffmpeg are missing."""
    options = ("-vf", f"{CONSTANT_RATE},{PALETTE}", "-loop", "0", "-f", "gif")
    _write(target, show, traces, size, options)


def _write(
    target: Path,
    show: Show,
    traces: Traces,
    size: FilmSize,
    options: tuple[str, ...],
    *,
    spoken: bool = False,
) -> None:
    ffmpeg = find_ffmpeg()
    with TemporaryDirectory() as name:
        folder = Path(name)
        still = replace(show, watch="")  # nothing plays by itself, at the computer's pace
        (folder / "page.html").write_text(export(still, traces), "utf-8")
        with opened(folder / "page.html", (size.width, size.height), size.scheme) as tab:
            texts = _draw(tab, folder, short=show.watch == CUT)
        made = folder / f"film{target.suffix}"
        read = (ffmpeg, "-v", "error", "-f", "concat", "-i", str(folder / "frames.txt"))
        sound = narrated(texts, folder) if spoken else ()
        seconds = texts[-1].start + texts[-1].seconds
        last = ("-t", f"{seconds:.3f}", *REPRODUCIBLE, str(made))
        run = subprocess.run([*read, *sound, *options, *last], capture_output=True, check=False)
        if run.returncode:
            raise WarploomError(f"ffmpeg failed: {run.stderr.decode(errors='replace').strip()}")
        write_bytes(target, made.read_bytes())


def _draw(tab: Tab, folder: Path, *, short: bool) -> list[Spoken]:
    """Draws each shot into a file, lists them with their times for ffmpeg, and returns the texts
    with theirs, which fill the film."""
    tab.wait_for("document.querySelector('.tabs') !== null && 'warploomFilm' in window")
    tab.wait_for(f"warploomFilm.begin({str(short).lower()}).length > 0")
    shots = tab.evaluate(f"warploomFilm.begin({str(short).lower()})")
    lines = ["ffconcat version 1.0"]
    texts: list[Spoken] = []
    now = 0.0
    for number, shot in enumerate(shots):
        tab.evaluate(f"warploomFilm.show({number})")
        (folder / f"{number:04}.png").write_bytes(tab.picture())
        seconds = shot["seconds"]
        lines += [f"file {number:04}.png", f"duration {seconds:.3f}"]
        if shot["moves"]:  # the steps to the next text, during which this one stays
            texts[-1] = dataclasses.replace(texts[-1], seconds=texts[-1].seconds + seconds)
        else:
            texts.append(Spoken(shot["text"], now, seconds))
        now += seconds
    lines.append(f"file {len(shots) - 1:04}.png")  # else ffmpeg shows the last one for an instant
    (folder / "frames.txt").write_text("\n".join(lines), "utf-8")
    return texts
