"""Films as files: videos and GIFs that Chromium and ffmpeg make of a page. Skipped where one of
them is missing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import BROWSER, NO_BROWSER, REQUIRED
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.ui.lessons import ORDER, find_lesson
from warploom.ui.page import BUNDLE

pytestmark = [
    pytest.mark.skipif(not BROWSER and not REQUIRED, reason=NO_BROWSER),
    pytest.mark.skipif(not BUNDLE.exists() and not REQUIRED, reason="the page was not built"),
    pytest.mark.xdist_group("browser"),
]
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


def tour(*arguments: str) -> None:
    run = CliRunner().invoke(app, ["tour", *arguments], catch_exceptions=False)
    assert run.exit_code == 0, run.output


def probed(file: Path) -> tuple[list[str], float]:
    """Return a film's codecs and its seconds."""
    asked = ("-show_entries", "stream=codec_name:format=duration", "-of", "csv=p=0")
    answer = subprocess.run(
        ["ffprobe", "-v", "error", *asked, str(file)], capture_output=True, check=True, text=True
    )
    *codecs, seconds = answer.stdout.split()
    return codecs, float(seconds)


@needs_ffmpeg
def test_the_explainer_is_a_video_of_at_most_60_seconds(tmp_path: Path) -> None:
    file = tmp_path / "simt.webm"
    voice = ("--voice",) if shutil.which("espeak-ng") else ()
    tour("--short", *voice, "--export-video", str(file))
    codecs, seconds = probed(file)
    assert codecs == ["vp9", *(["opus"] if voice else [])]
    assert 50 < seconds <= 60
    if voice:
        assert loudness(file) > QUIET


QUIET = -40
"""Decibels; silence has far less."""


def loudness(file: Path) -> float:
    """Return the mean volume of a film's sound, in decibels."""
    command = ["ffmpeg", "-v", "info", "-i", str(file), "-af", "volumedetect", "-f", "null", "-"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stderr
    return float(said.split("mean_volume: ")[1].split(" dB")[0])


@needs_ffmpeg
def test_the_moving_picture_is_small_and_the_same_each_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.gif", "other.gif")]
    for file in files:
        tour("between-warps", "--short", "--export-gif", str(file))
    assert files[0].read_bytes() == files[1].read_bytes()
    codecs, seconds = probed(files[0])
    assert codecs == ["gif"]
    assert 10 < seconds <= 60
    assert files[0].stat().st_size < 1_500_000


@needs_ffmpeg
def test_the_cut_of_a_lesson_is_an_mp4(tmp_path: Path) -> None:
    file = tmp_path / "between-warps.mp4"
    tour("between-warps", "--short", "--export-video", str(file))
    codecs, seconds = probed(file)
    assert codecs == ["h264"]
    assert 10 < seconds <= 60


@needs_ffmpeg
@pytest.mark.parametrize("option", ["--export-video", "--export-gif"])
def test_a_film_lasts_until_its_last_text_has_been_read(option: str, tmp_path: Path) -> None:
    """No steps are between the captions of this lesson: its film is as long as its texts take to be
    read, at 160 words per minute, with 0.7 s for each picture."""
    lesson = find_lesson("between-warps")
    assert lesson is not None
    texts = [*(caption.text for caption in lesson.captions), lesson.recap]
    words = sum(len([one for one in text.split() if re.search(r"\w", one)]) for text in texts)
    file = tmp_path / f"film.{'mp4' if option == '--export-video' else 'gif'}"
    tour("between-warps", "--short", option, str(file))
    _, seconds = probed(file)
    assert seconds == pytest.approx(60 * words / 160 + 0.7 * len(texts), abs=0.2)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = ["tour", "branch", "--export-gif", str(tmp_path / "film.gif")]
    run = CliRunner().invoke(app, command)
    assert "Chromium" in str(run.exception)
    assert "apt-get install chromium" in str(run.exception)
    (tmp_path / "chromium").write_text("", "utf-8")
    (tmp_path / "chromium").chmod(0o755)
    run = CliRunner().invoke(app, command)
    assert "apt-get install ffmpeg" in str(run.exception)


def test_a_video_has_a_known_suffix(tmp_path: Path) -> None:
    run = CliRunner().invoke(app, ["tour", "--short", "--export-video", str(tmp_path / "film.avi")])
    assert ".webm or .mp4" in str(run.exception)


CUTS = [pytest.param(name, marks=() if name == "branch" else pytest.mark.nightly) for name in ORDER]


@needs_ffmpeg
@pytest.mark.parametrize("name", CUTS)
def test_the_cut_of_a_lesson_is_a_video_of_at_most_60_seconds(name: str, tmp_path: Path) -> None:
    """Its pictures change, and none is empty: one in each fifth of the film differs from the one
    before, and compresses to more than a picture of one color."""
    file = tmp_path / f"{name}.webm"
    tour(name, "--short", "--export-video", str(file))
    codecs, seconds = probed(file)
    assert codecs == ["vp9"]
    assert 5 < seconds <= 60
    pictures = [picture(file, seconds * (part + 0.5) / 5) for part in range(5)]
    assert len(set(pictures)) >= 3
    assert min(map(len, pictures)) > 20_000


def picture(file: Path, second: float) -> bytes:
    """Returns the picture of a film at a time, as PNG."""
    command = ["ffmpeg", "-v", "error", "-ss", f"{second:.2f}", "-i", str(file), "-frames:v", "1"]
    command += ["-f", "image2pipe", "-c:v", "png", "-"]
    return subprocess.run(command, capture_output=True, check=True).stdout
