"""Runs one PTX program as its `// launch:` line describes, and raises an error if the machines
disagree.

The line names a runner and its options as JSON:

    // launch: agree {"shape": [2, 40], "seed": 7, "schedule": {"policy": "fair", ...}}
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import shaped_runs
import store_batch_runs
from agreement import never_ends, outcome
from store_batch_programs import Places

import warploom as wl
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine

LAUNCH = re.compile(r"^// launch: (\w+) (\{.*\})$", re.MULTILINE)


class Disagreement(AssertionError):
    """The machines have different outcomes; the message contains the first difference."""


def replay(text: str) -> None:
    """Runs a text that has a launch line. Raises Disagreement, or the error of a machine."""
    found = LAUNCH.search(text)
    assert found is not None, "the program has no `// launch:` line"
    RUNNERS[found[1]](text, **json.loads(found[2]))


def launch_line(runner: str, options: dict[str, Any]) -> str:
    """Returns the line that makes `replay` run a text with these options."""
    return f"// launch: {runner} {json.dumps(options, default=sorted)}"


def _schedule(options: dict[str, Any]) -> Schedule:
    """Returns the schedule of options, in which JSON holds sets and tuples as lists."""
    return msgspec.convert(options, Schedule)


def agree(text: str, shape: tuple[int, int], seed: int, schedule: dict[str, Any]) -> None:
    """Runs a kernel `k(buffer)` of `random_programs` on both machines."""
    given = text, (shape[0], shape[1]), seed, _schedule(schedule)
    expected = outcome(*given, ReferenceEngine())
    found = outcome(*given, CompiledEngine())
    if not never_ends(found, expected):
        compare(expected, found)


def agree_shaped(text: str, block: tuple[int, int], blocks: int, schedule: dict[str, Any]) -> None:
    """Runs a kernel `k(buffer)` of `shaped_programs` on both machines."""
    given = text, (block[0], block[1]), _schedule(schedule)
    expected = shaped_runs.outcome_of(*given, ReferenceEngine(), blocks)
    compare(expected, shaped_runs.outcome_of(*given, CompiledEngine(), blocks))


def agree_store_batches(
    text: str,
    runs: list[dict[str, int]],
    block: tuple[int, int],
    lanes: int,
    schedule: dict[str, Any],
) -> None:
    """Runs a kernel of `store_batch_programs` on both machines."""
    places = [Places(**one) for one in runs]
    given = text, places, (block[0], block[1]), lanes, _schedule(schedule)
    expected = store_batch_runs.outcome_of(*given, ReferenceEngine())
    compare(expected, store_batch_runs.outcome_of(*given, CompiledEngine()))


def ends(text: str, engine: str) -> None:
    """Loads a text and launches its kernels: each ends normally, or with a WarploomError."""
    gpu = wl.Device("h100", engine=engine, output=lambda _: None, memory_bytes=1 << 28)
    with contextlib.suppress(wl.WarploomError):
        module = gpu.compile(text, "ptx")
        for name in module.kernels:
            module[name][1, 40, 0, 64](gpu.zeros(64, np.uint32), max_instructions=800)


def agree_forms(text: str, family: str, seed: int) -> None:
    """Runs a program of the operations that a text lists (`form_families`) on both machines."""
    import form_families  # which imports this module

    form_families.agree_forms(text, family, seed)


RUNNERS: dict[str, Callable[..., None]] = {
    "agree": agree,
    "agree_shaped": agree_shaped,
    "agree_store_batches": agree_store_batches,
    "agree_forms": agree_forms,
    "ends": ends,
}


def compare(expected: Any, found: Any) -> None:
    """Raises Disagreement with the first difference if two outcomes are not equal."""
    if found != expected:
        raise Disagreement(difference(expected, found))


def difference(expected: Any, found: Any, at: str = "outcome") -> str:
    """Returns the first position at which two unequal outcomes differ, and how."""
    if type(expected) is not type(found) or isinstance(expected, type):
        return f"{at}: {brief(found)}, where the reference machine has {brief(expected)}"
    if isinstance(expected, dict):
        name = next(n for n in expected if found.get(n) != expected[n])
        return difference(expected[name], found[name], f"count {name}")
    if isinstance(expected, (tuple, list)) and len(expected) == len(found):
        index = next(i for i, pair in enumerate(zip(expected, found, strict=True)) if differ(pair))
        return difference(expected[index], found[index], f"{at}[{index}]")
    if isinstance(expected, bytes):
        byte = next(i for i, (e, f) in enumerate(zip(expected, found, strict=True)) if e != f)
        word = slice(byte & ~7, (byte & ~7) + 8)
        return (
            f"{at}: bytes {word.start} to {word.stop - 1} are {found[word].hex()}, where the"
            f" reference machine has {expected[word].hex()}"
        )
    return f"{at}: {brief(found)}, where the reference machine has {brief(expected)}"


def differ(pair: tuple[Any, Any]) -> bool:
    """Returns true if two parts of outcomes differ."""
    return bool(pair[0] != pair[1])


def brief(value: Any) -> str:
    """Returns a short text for a part of an outcome."""
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, (tuple, list)) and any(isinstance(part, bytes) for part in value):
        return "memory and counts"
    if isinstance(value, dict):
        return "counts"
    return repr(value)[:200]
