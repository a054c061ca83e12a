"""Speaks the texts of a film: espeak-ng makes a sound of each, which ffmpeg puts at its time."""

from __future__ import annotations

import subprocess
import wave
from dataclasses import dataclass
from pathlib import Path

from warploom.core.errors import WarploomError
from warploom.ui.installed import find_installed

WORDS_A_MINUTE, FASTEST = 165, 300
"""How fast texts are spoken, and at most where one is too long for its time."""


@dataclass(frozen=True)
class Spoken:
    """A text, the second at which it begins, and the seconds that it may take."""

    text: str
    start: float
    seconds: float


def find_voice() -> str:
    """Returns the path of espeak-ng. Raises WarploomError where it is not installed."""
    return find_installed("--voice", "espeak-ng", "espeak-ng")


def narrated(texts: list[Spoken], folder: Path) -> tuple[str, ...]:
    """Speaks texts into files of a folder; returns ffmpeg's options that read them and mix them
    into one sound, `[voice]`. The film itself is input 0."""
    inputs: list[str] = []
    delays: list[str] = []
    for number, spoken in enumerate(texts, 1):
        sound = folder / f"{number:03}.wav"
        _speak(spoken, sound)
        inputs += ["-i", str(sound)]
        delays.append(f"[{number}:a]adelay={round(1000 * spoken.start)}:all=1[v{number}]")
    names = "".join(f"[v{number}]" for number in range(1, len(texts) + 1))
    mix = f"{names}amix=inputs={len(texts)}:normalize=0,apad[voice]"
    return (*inputs, "-filter_complex", ";".join([*delays, mix]), "-map", "0:v", "-map", "[voice]")


def _speak(spoken: Spoken, sound: Path) -> None:
    """Writes the sound of a text, spoken faster if it would take longer than it may."""
    rate = WORDS_A_MINUTE
    while (seconds := _spoken(spoken.text, sound, rate)) > spoken.seconds and rate < FASTEST:
        rate = min(FASTEST, 1 + int(rate * seconds / spoken.seconds))


def _spoken(text: str, sound: Path, rate: int) -> float:
    """Writes the sound of a text at a rate; returns its seconds."""
    command = [find_voice(), "-v", "en-us", "-s", str(rate), "-w", str(sound), "--stdin"]
    plain = text.replace("`", "").encode()
    run = subprocess.run(command, input=plain, capture_output=True, check=False)
    if run.returncode:
        raise WarploomError(f"espeak-ng failed: {run.stderr.decode(errors='replace').strip()}")
    with wave.Wave_read(str(sound)) as made:
        return made.getnframes() / made.getframerate()
