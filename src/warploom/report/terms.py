"""Translates the terms of CUDA into those of OpenCL, SYCL and HIP; docs/glossary.md is made from
this table.

The program itself uses CUDA's terms. A report can be written in the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from warploom.core.errors import WarploomError

VOCABULARIES = ("cuda", "opencl", "sycl", "hip")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing, its name in each vocabulary, and what it is."""

    cuda: str
    opencl: str
    sycl: str
    hip: str
    meaning: str


GLOSSARY = (
    Entry("thread", "work-item", "work-item", "thread", "one execution of the kernel's code"),
    Entry(
        "lane",
        "sub-group lane",
        "sub-group lane",
        "lane",
        "a thread's position in its warp: 0 to 31 (0 to 63 with `warp_size=64`)",
    ),
    Entry(
        "warp",
        "sub-group",
        "sub-group",
        "wavefront",
        "a group of 32 threads that execute each instruction together (64 on AMD's GCN and CDNA)",
    ),
    Entry(
        "block",
        "work-group",
        "work-group",
        "block",
        "a group of threads that share memory and can wait for each other at barriers",
    ),
    Entry("grid", "NDRange", "ND-range", "grid", "all blocks of a launch"),
    Entry(
        "active mask",
        "active lanes",
        "active lanes",
        "execution mask",
        "the lanes of a warp that execute an instruction",
    ),
    Entry("SM", "compute unit", "compute unit", "compute unit", "a processor that runs blocks"),
    Entry(
        "CUDA core",
        "processing element",
        "processing element",
        "lane of a SIMD unit",
        "an execution unit that performs one single-precision operation per cycle, for one lane",
    ),
    Entry("register", "register", "register", "VGPR", "on-chip storage private to a thread"),
    Entry(
        "global memory",
        "global memory",
        "global memory",
        "global memory",
        "memory that all blocks can access",
    ),
    Entry(
        "shared memory",
        "local memory",
        "local memory",
        "shared memory (LDS)",
        "on-chip memory that the threads of a block share",
    ),
    Entry(
        "local memory",
        "private memory",
        "private memory",
        "private memory",
        "memory that is private to a thread and is part of device memory",
    ),
    Entry(
        "constant memory",
        "constant memory",
        "constant memory",
        "constant memory",
        "read-only memory that serves one word at a time to all lanes",
    ),
    Entry(
        "barrier",
        "barrier",
        "group_barrier",
        "barrier",
        "a point at which the threads of a block wait for each other",
    ),
    Entry(
        "atomic", "atomic", "atomic_ref", "atomic", "a read-modify-write performed as one operation"
    ),
    Entry(
        "sector",
        "sector",
        "sector",
        "sector",
        "an aligned group of 32 bytes in memory: the unit of transfers to and from caches",
    ),
    Entry(
        "line",
        "cache line",
        "cache line",
        "cache line",
        "an aligned group of 128 bytes in memory: four sectors",
    ),
    Entry("bank", "bank", "bank", "bank", "a part of shared memory that serves one word per pass"),
    Entry(
        "occupancy",
        "occupancy",
        "occupancy",
        "occupancy",
        "the number of resident warps on an SM as a share of the maximum",
    ),
    Entry(
        "divergence",
        "divergence",
        "divergence",
        "divergence",
        "a state in which lanes of a warp take different sides of a branch",
    ),
)

ARCHITECTURE = {
    "SIMT": "Single instruction, multiple threads: one instruction is issued for all threads of "
    "a warp, but the program is written for one thread.",
    "warp": 'Like "thread", the term comes from weaving: the warp is the set of parallel threads '
    "on a loom. Weaving was the first technology with parallel threads (Lindholm and others, "
    "IEEE Micro 28 (2), 2008).",
    "half-warp, quarter-warp": "A group of 16 neighboring lanes (half-warp) or 8 neighboring lanes "
    "(quarter-warp). Before compute capability 2.0, the accesses of each half-warp were served "
    "separately. Accesses of 8 bytes per lane are still served one half-warp at a time, and "
    "accesses of 16 bytes per lane one quarter-warp at a time.",
    "active block, active warp": "A block that is resident on a multiprocessor, or a warp of "
    "such a block. The block keeps its registers and its shared memory until it ends.",
    "selected": "A warp for which the scheduler issues an instruction in the current cycle.",
    "eligible": "A warp that could issue in the current cycle. The scheduler selects one of the "
    "eligible warps.",
    "stalled": "A warp that cannot issue in the current cycle. The tooltips of the Time view and "
    "[timing.md](timing.md) list Nsight Compute's stall reasons.",
    "coalescing": "Combining the accesses of a warp into as few transactions as their addresses"
    " allow.",
    "convergence, reconvergence": "The point at which lanes that had diverged execute together "
    "again.",
}
"""Words of the architecture, each with what it means."""

PHRASES: dict[str, dict[str, str]] = {
    "opencl": {
        "block limit sm": "work-group limit CU",
        "grid size": "NDRange size",
        "shared memory": "local memory",
        "shared mem": "local mem",
        "local memory": "private memory",
        "shared": "local",
        "local": "private",
        "threads": "work-items",
        "thread": "work-item",
        "warps": "sub-groups",
        "warp": "sub-group",
        "blocks": "work-groups",
        "block": "work-group",
        "grid": "NDRange",
        "sms": "CUs",
        "sm": "CU",
    },
    "hip": {
        "shared memory": "shared memory (LDS)",
        "shared mem": "LDS",
        "local memory": "private memory",
        "local": "private",
        "warps": "wavefronts",
        "warp": "wavefront",
        "registers": "VGPRs",
        "register": "VGPR",
        "sms": "CUs",
        "sm": "CU",
    },
}
"""The words for what stands in reports and on the page, by vocabulary; the longest phrase that is
found is replaced, once."""

PHRASES["sycl"] = PHRASES["opencl"] | {"grid size": "ND-range size", "grid": "ND-range"}

CODE_PHRASES: dict[str, dict[str, str]] = {
    "opencl": {
        "__syncthreads()": "barrier()",
        "__syncwarp()": "sub_group_barrier()",
        "threadIdx": "get_local_id()",
    },
}
"""Code that the page's texts mention, in the other languages."""


@lru_cache
def translator(vocabulary: str) -> Callable[[str], str]:
    """Returns a function that translates a text of ours into another vocabulary.

    "threadIdx.x" and other code stay as they are. WarploomError for a vocabulary that is none.
    """
    if vocabulary not in VOCABULARIES:
        raise WarploomError(f"unknown terms {vocabulary!r}; choose from {', '.join(VOCABULARIES)}")
    phrases = PHRASES.get(vocabulary, {})
    if not phrases:
        return lambda text: text
    known = "|".join(sorted(phrases, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w.-])({known})(?![\w(]|\.\w)", re.IGNORECASE)
    return lambda text: pattern.sub(lambda found: _like(found[0], phrases[found[0].lower()]), text)


def _like(found: str, word: str) -> str:
    """Returns the word with the capitals of what it stands for."""
    if found[0].isupper() and word[0].islower():
        return " ".join(part[0].upper() + part[1:] for part in word.split(" "))
    return word


def meanings() -> dict[str, str]:
    """Returns the meaning of each of CUDA's terms and of the architecture's, as plain text."""
    found = {entry.cuda: entry.meaning for entry in GLOSSARY}
    for names, meaning in ARCHITECTURE.items():
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", meaning)
        found |= {name: plain for name in names.split(", ") if name not in found}
    return {name: meaning.replace("`", "") for name, meaning in found.items()}


def glossary_page() -> str:
    """Returns the text of docs/glossary.md."""
    lines = [
        "# Glossary",
        "",
        "Warploom and its documentation use CUDA's terms. `warploom profile --terms opencl` (or "
        "`sycl`, `hip`) prints a report in the terminology of another language.",
        "",
        "| CUDA | OpenCL | SYCL | HIP | meaning |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {e.cuda} | {e.opencl} | {e.sycl} | {e.hip} | {e.meaning} |" for e in GLOSSARY),
        "",
        "## Terms of the architecture",
        "",
        *(f"- *{name}*: {meaning}" for name, meaning in ARCHITECTURE.items()),
        "",
    ]
    return "\n".join(lines)
