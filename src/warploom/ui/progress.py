"""Keeps which lessons a user has read, and whose tasks are done: a small file in the user's data.

The page is served from another port each time, so the browser cannot keep it.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from warploom.core.input_files import decode_json, read_limited
from warploom.core.user_folders import user_folder

READ, DONE = "read", "done"
"""What is kept of a lesson: its captions were read to the end; its task is done."""


def progress_file() -> Path:
    """Returns the file: in WARPLOOM_DATA_DIR, else in `warploom` of the user's data."""
    named = os.environ.get("WARPLOOM_DATA_DIR")
    folder = Path(named) if named else user_folder("XDG_DATA_HOME", ".local", "share") / "warploom"
    return folder / "progress.json"


def read_progress() -> dict[str, str]:
    """Returns READ or DONE for each lesson of which one is kept; nothing of a damaged file."""
    try:
        kept = decode_json(read_limited(progress_file()))
        return {str(name): str(state) for name, state in kept.items() if state in (READ, DONE)}
    except (OSError, ValueError, AttributeError):
        return {}


def note_progress(lesson: str, state: str) -> None:
    """Records READ or DONE for a lesson; a lesson that is done stays so. Nothing is recorded in a
    folder that cannot be written to."""
    kept = read_progress()
    if kept.get(lesson) == DONE:
        return
    file = progress_file()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps({**kept, lesson: state}, indent=2, sort_keys=True), "utf-8")
        beside.replace(file)
