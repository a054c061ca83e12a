"""Core files, JSON and arrays that Warploom reads, with values or bytes changed: they are refused
with a `WarploomError`, or they mean something; a launch of a core file then runs.

A launch is opened in a child process: its memory stays where the file has it until a process ends.
"""

from __future__ import annotations

import io
import json
import os
import random
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

import warploom as wl
from fuzzing.cases import Target
from fuzzing.drawing import EDGES, mutate
from fuzzing.targets.files import PTX, archive, file_target
from warploom.cli.tune import space_of
from warploom.core.errors import WarploomError
from warploom.debug.session import Session
from warploom.debug.target import Target as Debugged
from warploom.host import device
from warploom.host.core_files.opening import open_core
from warploom.host.values import parse_arguments
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.tuning.measured import read_measured
from warploom.ui.progress import progress_file, read_progress

BASE = 1 << 44
"""Where the memory of launches is: far from what the system gives processes."""

LIMIT = 2000
"""Warp instructions that a launch of a core file may execute."""

ODD: tuple[Any, ...] = (None, True, "", "x", "\x1b[2J", 1.5, 1e300, [], {}, [[[]]], {"x": 1})


def in_a_child(task: Any) -> None:
    """Does a task in a child process. Raises AssertionError for what it raises, and where the
    child dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        text = ""
        try:
            task()
        except BaseException:
            text = traceback.format_exc()
        os.write(writer, text.encode()[-4000:])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert not status, f"the process that opens a core file ends with status {status}"
    assert not text, text


@cache
def cores() -> tuple[bytes, ...]:
    """The core file of a fault."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.wlcore"
        in_a_child(partial(save_fault, file))
        return (file.read_bytes(),)


def save_fault(file: Path) -> None:
    """Saves a launch that ends in a fault, with a texture on its device."""
    device.DeviceMemory = partial(DeviceMemory, base=BASE)  # type: ignore[misc]
    gpu = wl.Device("v100", core=str(file), memory_bytes=1 << 28)
    texture = gpu.texture(np.arange(64, dtype=np.float32))
    with suppress(WarploomError):
        gpu.compile(PTX, "ptx")["k"][2, 40](gpu.zeros(32, np.uint32))
    del texture


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the lists and dictionaries in a JSON value, with each key in them."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield value, key
        if isinstance(part, (dict, list)):
            yield from places(part)


def change_values(text: bytes, rng: random.Random) -> bytes:
    """Changes one to three values of a JSON text, or leaves them out."""
    value = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        inner, key = rng.choice([*places(value)] or [([0], 0)])
        old = inner[key]
        near = [old + rng.choice((-512, -1, 1, 16, 4096)), old * 2] if type(old) is int else []
        inner[key] = deepcopy(rng.choice((*ODD, *EDGES, *near)))
        if rng.random() < 0.1:
            del inner[key]
    return json.dumps(value).encode()


def damage_json(text: bytes, rng: random.Random) -> bytes:
    """Changes values or bytes of a JSON text, or puts it deep into brackets."""
    kind = rng.random()
    if kind < 0.05:
        depth = rng.choice((63, 64, 65, 1000, 100_000))
        return b"[" * depth + text + b"]" * depth
    return change_values(text, rng) if kind < 0.7 else mutate(text, rng)


def damage_core(data: bytes, rng: random.Random) -> bytes:
    """Changes values of `core.json`, bytes of a member, or bytes of the archive."""
    kind = rng.random()
    if kind < 0.1:
        return mutate(data, rng)
    with ZipFile(io.BytesIO(data)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    name = "core.json" if kind < 0.8 else rng.choice(sorted(parts))
    parts[name] = (damage_json if name == "core.json" else mutate)(parts[name], rng)
    return archive(parts)


def read_core(data: bytes) -> None:
    """Opens a core file, and runs its launch to where it goes wrong."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.wlcore"
        file.write_bytes(data)
        in_a_child(partial(run_core, file))


def run_core(file: Path) -> None:
    """Runs the launch of a core file as a debugger does, up to a limit."""
    with suppress(WarploomError):
        opened = open_core(file)
        launch = replace(opened.launch, max_instructions=LIMIT)
        kernel, context = opened.kernel, opened.kernel.context
        target = Debugged.of(kernel.program, launch, context.memory, context.spec, context.options)
        Session(kernel, target).start()


SPACE: dict[str, list[Any]] = {"block": [32, 64], "tile": [1, 2]}
ROW = {"block": 64, "tile": 1, "time": 0.25, "times": [0.25]}


@cache
def texts() -> tuple[bytes, ...]:
    """A cache file of Kernel Tuner, results in the T4 format, a space, and progress in lessons."""
    row = {"configuration": {"block": 64, "tile": 1}, "invalidity": "correct"}
    row |= {"measurements": [{"name": "time", "value": 2.5, "unit": "ms"}], "objectives": ["time"]}
    values = {"cache": {"64,1": ROW}}, {"results": [row]}, SPACE, {"banks": "read"}
    return tuple(json.dumps(value).encode() for value in values)


def read_json_files(data: bytes) -> None:
    """Reads a JSON text as each kind of file that is JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "progress.json"
        file.write_bytes(data)
        with suppress(WarploomError):
            read_measured(file, SPACE)
        with suppress(WarploomError):
            space_of(str(file))
        before = os.environ.get("WARPLOOM_DATA_DIR")
        os.environ["WARPLOOM_DATA_DIR"] = folder
        try:
            assert progress_file() == file
            read_progress()
        finally:
            os.environ.pop("WARPLOOM_DATA_DIR")
            os.environ.update({} if before is None else {"WARPLOOM_DATA_DIR": before})


@cache
def arrays() -> tuple[bytes, ...]:
    """Arrays as NumPy saves them."""
    made: list[bytes] = []
    for array in (np.arange(16, dtype=np.float32), np.ones((2, 3), ">i4")):
        stream = io.BytesIO()
        np.save(stream, array)
        made.append(stream.getvalue())
    return tuple(made)


def read_array(data: bytes) -> None:
    """Reads an array as an argument of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "in.npy"
        file.write_bytes(data)
        with suppress(WarploomError):
            parse_arguments([str(file)])


TARGETS: tuple[Target, ...] = (
    file_target("core", cores, read_core, damage_core),
    file_target("json", texts, read_json_files, damage_json),
    file_target("npy", arrays, read_array),
)
