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
        "a thread's position in its warp, 0 to 31 (63 with `warp_size=64`)",
    ),
    Entry(
        "warp",
        "sub-group",
        "sub-group",
        "wavefront",
        "the threads that one instruction is issued for: 32, on AMD's GCN and CDNA 64",
    ),
    Entry("block", "work-group", "work-group", "block", "threads that share memory and barriers"),
    Entry("grid", "NDRange", "ND-range", "grid", "all blocks of a launch"),
    Entry(
        "active mask",
        "active lanes",
        "active lanes",
        "execution mask",
        "the lanes that an instruction acts on",
    ),
    Entry("SM", "compute unit", "compute unit", "compute unit", "the processor of a block"),
    Entry(
        "CUDA core",
        "processing element",
        "processing element",
        "lane of a SIMD unit",
        "what computes one lane's single-precision result in a cycle",
    ),
    Entry("register", "register", "register", "VGPR", "a thread's own storage on the chip"),
    Entry(
        "global memory", "global memory", "global memory", "global memory", "all blocks access it"
    ),
    Entry(
        "shared memory",
        "local memory",
        "local memory",
        "shared memory (LDS)",
        "memory of a block, on the chip",
    ),
    Entry(
        "local memory",
        "private memory",
        "private memory",
        "private memory",
        "a thread's own, in device memory",
    ),
    Entry(
        "constant memory",
        "constant memory",
        "constant memory",
        "constant memory",
        "read-only, one word to all",
    ),
    Entry(
        "barrier", "barrier", "group_barrier", "barrier", "where threads of a block wait for others"
    ),
    Entry("atomic", "atomic", "atomic_ref", "atomic", "a read, change and write as one operation"),
    Entry("sector", "sector", "sector", "sector", "32 bytes of memory, aligned: a cache's unit"),
    Entry("line", "cache line", "cache line", "cache line", "128 bytes of memory, aligned"),
    Entry("bank", "bank", "bank", "bank", "a part of shared memory that serves one word at a time"),
    Entry(
        "occupancy", "occupancy", "occupancy", "occupancy", "warps on an SM over those it can hold"
    ),
    Entry(
        "divergence",
        "divergence",
        "divergence",
        "divergence",
        "lanes of a warp that take different branches",
    ),
)

ARCHITECTURE = {
    "SIMT": "Single instruction, multiple threads: one instruction is issued for all threads of a"
    " warp, whose program is written for one thread.",
    "warp": "The word is from weaving, which the threads of a program are also from: the warp is"
    " the set of parallel threads on a loom, the first technology of parallel threads (Lindholm and"
    " others, IEEE Micro 28 (2), 2008).",
    "half-warp, quarter-warp": "16 and 8 neighbouring lanes: before 2.0 memory served half-warps;"
    " accesses of 8 and 16 bytes per lane are served by halves and quarters still.",
    "active block, active warp": "A block that is resident on a multiprocessor, and its warps:"
    " registers and shared memory are theirs until the block ends.",
    "selected": "A warp of which the scheduler issues an instruction in this cycle.",
    "eligible": "A warp that could issue in this cycle; of several one is selected.",
    "stalled": "A warp that cannot issue in this cycle; Nsight Compute's reasons are in the tips of"
    " the Time view and in [timing.md](timing.md).",
    "coalescing": "Serving the accesses of a warp by as few transactions as their addresses allow.",
    "convergence, reconvergence": "Lanes that had taken different branches run together again.",
}
"""Words of the architecture, each with what it means."""

# What stands in reports, and the words for it there: whole phrases first, each replaced once.
_PHRASES: dict[str, dict[str, str]] = {
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

_PHRASES["sycl"] = _PHRASES["opencl"] | {"grid size": "ND-range size", "grid": "ND-range"}


@lru_cache
def translator(vocabulary: str) -> Callable[[str], str]:
    """Returns a function that translates a text of ours into another vocabulary.

    "threadIdx.x" and other code stay as they are. WarploomError for a vocabulary that is none.
    """
    if vocabulary not in VOCABULARIES:
        raise WarploomError(f"the terms {vocabulary!r} are none of {', '.join(VOCABULARIES)}")
    phrases = _PHRASES.get(vocabulary, {})
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


def glossary_page() -> str:
    """Returns the text of docs/glossary.md."""
    lines = [
        "# Glossary",
        "",
        "CUDA's words are used throughout. `warploom profile --terms opencl` (or `sycl`, `hip`)"
        " writes a report in the others.",
        "",
        "| CUDA | OpenCL | SYCL | HIP | what it is |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {e.cuda} | {e.opencl} | {e.sycl} | {e.hip} | {e.meaning} |" for e in GLOSSARY),
        "",
        "## Words of the architecture",
        "",
        *(f"- *{name}*: {meaning}" for name, meaning in ARCHITECTURE.items()),
        "",
    ]
    return "\n".join(lines)
