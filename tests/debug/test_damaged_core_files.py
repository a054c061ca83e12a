"""Core files that are damaged or changed by hand: an error that names the file, or a launch that
runs; and nothing in them that a terminal executes."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sessions import talk

import warploom as wl
from warploom.core.errors import InstructionLimit, KernelFault, WarploomError
from warploom.debug.post_mortem import opened_session
from warploom.host import device
from warploom.machine.memory.device_memory import DeviceMemory

SOURCE = """
__constant__ float factor = 2.0f;
extern "C" __global__ void k(cudaTextureObject_t t, float *y)
{
    y[threadIdx.x + 4] = tex1Dfetch<float>(t, threadIdx.x) * factor;
}
"""
"""Threads 60 to 63 write behind y."""

Parts = dict[str, bytes]
Keys = tuple[str | int, ...]


BASE = 1 << 44
"""Where the memory of the launch is: far from what the system gives processes."""


def forked(task: Callable[[], str]) -> str:
    """What a task returns that a child of this process does, whose addresses are its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = task()
        except BaseException:
            text = f"raw: {traceback.format_exc()}"
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    assert not text.startswith("raw: "), text
    return text


def save_fault(file: Path) -> str:
    """Saves a launch that ends in a fault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "DeviceMemory", partial(DeviceMemory, base=BASE))
        gpu = wl.Device(core=str(file), memory_bytes=1 << 30)
    texels = gpu.to_device(np.arange(64, dtype=np.float32), "x")
    kernel = gpu.compile(SOURCE, name="kernel.cu")["k"]
    with pytest.raises(KernelFault):
        kernel[1, 64](gpu.texture(texels), gpu.zeros(64, np.float32, "y"))
    return ""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """The members of the core file of that launch."""
    file = tmp_path_factory.mktemp("cores") / "kernel.wlcore"
    forked(partial(save_fault, file))
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Parts) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def with_head(parts: Parts, head: Any) -> bytes:
    return packed({**parts, "core.json": json.dumps(head).encode()})


def run_core(file: Path) -> str:
    """The error of a core file; empty where its launch runs to where it goes wrong or ends."""
    try:
        opened_session(file)
    except WarploomError as error:
        return str(error)
    return ""


def outcome(data: bytes, file: Path) -> str:
    """The error of a core file with this content, which names the file; empty where it runs."""
    file.write_bytes(data)
    reason = forked(partial(run_core, file))
    assert not reason or str(file) in reason
    return reason


def test_the_file_as_it_is_opens(parts: Parts, tmp_path: Path) -> None:
    assert outcome(packed(parts), tmp_path / "a.wlcore") == ""


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        (("launch", "cluster"), [0, 1, 1], ">= 1"),
        (("launch", "grid"), [-1, 1, 1], ">= 1"),
        (("launch", "block"), [2048, 1, 1], "1,024"),
        (("launch", "globals"), [], "wrong addresses for the global variables"),
        (("launch", "globals", 0), 4096, "wrong addresses for the global variables"),
        (("launch", "parameters"), "AAAA", "3 bytes of parameters, but k takes 16"),
        (("launch", "policy"), "none", "launch.policy"),
        (("launch", "interrupts"), [10**6], "index of an interrupt must be less than"),
        (("launch", "resident_blocks"), 10**6, "resident_blocks is 1,000,000"),
        (("device", "engine"), "none", "device.engine"),
        (("device", "name"), "none", "no device 'none'"),
        (("device", "warp_size"), 33, "33"),
        (("memory", "textures", 0, 2), 10**6, "textures[0] does not describe a texture"),
        (("memory", "textures", 0, 4), 10**6, "textures[0] at"),
        (("memory", "textures", 0), [1], "textures[0] has 1 words"),
        (("memory", "heap"), {"4096": 64}, "the heap at 0x1000 is not in any allocation"),
        (("memory", "gaps"), [[2, 1]], "free ranges or allocations overlap"),
        (("memory", "variables"), {}, "its variables do not match the variables of its program"),
        (("sources",), ["a", "b", "c"], "it has no sources/1"),
        (("kernel",), "none", "its program has no kernel none"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_refused(
    parts: Parts, tmp_path: Path, keys: Keys, value: Any, reason: str
) -> None:
    *path, last = keys
    head, inner = copied(json.loads(parts["core.json"]), path)
    inner[last] = value
    assert reason in outcome(with_head(parts, head), tmp_path / "a.wlcore")


def run_second(first: Path, second: Path) -> str:
    """The error of a core file after another was opened in the same process."""
    assert run_core(first)
    gc.collect()
    return run_core(second)


def test_a_refused_file_does_not_keep_its_addresses(parts: Parts, tmp_path: Path) -> None:
    head, launch = copied(json.loads(parts["core.json"]), ["launch"])
    launch["globals"] = []
    refused, right = tmp_path / "refused.wlcore", tmp_path / "right.wlcore"
    refused.write_bytes(with_head(parts, head))
    right.write_bytes(packed(parts))
    assert forked(partial(run_second, refused, right)) == ""


DAMAGES: dict[str, Callable[[Parts], bytes]] = {
    "no archive": lambda _: b"nothing",
    "no core.json": lambda parts: packed({"kernel.ptx": parts["kernel.ptx"]}),
    "no kernel.ptx": lambda parts: packed({"core.json": parts["core.json"]}),
    "deep JSON": lambda parts: packed({**parts, "core.json": b'{"version":1,"x":' + b"[" * 10**6}),
    "not valid UTF-8": lambda parts: packed({**parts, "kernel.ptx": b"\xff"}),
    "no PTX": lambda parts: packed({**parts, "kernel.ptx": b"nothing"}),
    "too much text": lambda parts: packed({**parts, "kernel.ptx": b" " * (65 << 20)}),
    "too much memory": lambda parts: packed(
        {**parts, next(name for name in parts if name.startswith("memory/")): bytes(1 << 20)}
    ),
    "cut off": lambda parts: packed(parts)[:-60],
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_files_are_refused(parts: Parts, tmp_path: Path, kind: str) -> None:
    assert outcome(DAMAGES[kind](parts), tmp_path / "a.wlcore")


ODD = (
    *(
        None,
        True,
        "",
        "x",
        0,
        1,
        -1,
        33,
        2**31 - 1,
        2**32,
        2**47 - 4096,
        2**63 - 1,
        2**63,
        -(2**63),
    ),
    *(1.5, [], {}, [1, 1, 1], [[[]]], {"x": 1}),
)


def places(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """The keys of all values in a JSON value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*keys, key)
        if isinstance(part, (dict, list)):
            yield from places(part, (*keys, key))


def copied(head: Any, path: Sequence[str | int]) -> tuple[Any, Any]:
    """A copy of the head, and the value in it at some keys."""
    inner = copy = deepcopy(head)
    for key in path:
        inner = inner[key]
    return copy, inner


def changed(head: Any) -> Iterator[Any]:
    """The head with each value in turn changed to odd ones, and left out."""
    for *path, last in places(head):
        old = copied(head, path)[1][last]
        near = [old + step for step in (-512, -1, 1, 16, 4096)] if type(old) is int else []
        for value in (*ODD, *near):
            copy, inner = copied(head, path)
            inner[last] = value
            yield copy
        copy, inner = copied(head, path)
        del inner[last]
        yield copy


@pytest.mark.parametrize("every", [40, pytest.param(3, marks=pytest.mark.nightly)])
def test_any_value_is_refused_or_runs(parts: Parts, tmp_path: Path, every: int) -> None:
    heads = [*changed(json.loads(parts["core.json"]))][::every]
    found = [outcome(with_head(parts, head), tmp_path / "a.wlcore") for head in heads]
    assert 0 < sum(not reason for reason in found) < len(found)


def test_names_do_not_control_the_terminal(parts: Parts, tmp_path: Path) -> None:
    file = tmp_path / "a.wlcore"
    source = SOURCE.replace("{", "{ // \x1b[2J")
    for head in ({}, {"kernel": "\x1b[2Jk"}, {"module": "\x1b[2Jk"}):
        whole = {**json.loads(parts["core.json"]), **head}
        file.write_bytes(with_head({**parts, "sources/0": source.encode()}, whole))
        command = [
            sys.executable,
            "-m",
            "warploom.cli",
            "debug",
            str(file),
            "--batch",
            "-c",
            "list",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "\x1b" not in done.stdout + done.stderr
        assert r"\x1b[2J" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


ENDLESS = """
extern "C" __global__ void endless(volatile int *x)
{
    while (x[0] >= 0)
        x[0] = 1;
}
"""


def save_endless(file: Path) -> str:
    """Saves a launch that ends at its limit."""
    gpu = wl.Device(core=str(file))
    kernel = gpu.compile(ENDLESS, name="kernel.cu")["endless"]
    with pytest.raises(InstructionLimit):
        kernel[1, 32](gpu.zeros(1, np.int32), max_instructions=5000)
    return ""


def test_a_launch_without_an_end_opens_at_its_limit(tmp_path: Path) -> None:
    def script() -> str:
        session, stop = opened_session(file)
        assert isinstance(session.stepper.error, InstructionLimit)
        assert stop.reason == "error"
        assert session.position == 5000
        session.goto(10**12)
        assert session.position == 5000
        return ""

    file = tmp_path / "kernel.wlcore"
    forked(partial(save_endless, file))
    forked(script)


def test_caches_are_not_simulated_in_a_debugger() -> None:
    def script(terminal: Any) -> None:
        terminal.say("run")
        assert "kernel.cu" in terminal.say("reverse-stepi")
        assert terminal.value("threadIdx.x") == "60"

    faulty = SOURCE.replace("cudaTextureObject_t t, ", "").replace("tex1Dfetch<float>(t, ", "(")
    talk(faulty, 1, 64, [("y", np.zeros(64, np.float32))], script, caches=True)
