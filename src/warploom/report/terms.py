"""Translates the terms of CUDA into those of OpenCL and HIP; docs/glossary.md is made from this
table.

The program itself uses CUDA's terms. A report can be written in the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from warploom.core.errors import WarploomError

VOCABULARIES = ("cuda", "opencl", "hip")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing, its name in each vocabulary, and what it is."""

    cuda: str
    opencl: str
    hip: str
    meaning: str


GLOSSARY = (
    Entry("thread", "work-item", "thread", "one execution of the kernel's code"),
    Entry(
        "lane",
        "sub-group lane",
        "lane",
        "a thread's place in its warp, 0 to 31 (63 with `warp_size=64`)",
    ),
    Entry(
        "warp",
        "sub-group",
        "wavefront",
        "the threads that one instruction is issued for: 32, on AMD's GCN and CDNA 64",
    ),
    Entry("block", "work-group", "block", "threads that share memory and barriers"),
    Entry("grid", "NDRange", "grid", "all blocks of a launch"),
    Entry("active mask", "active lanes", "execution mask", "the lanes that an instruction acts on"),
    Entry("SM", "compute unit", "compute unit", "the processor that a block runs on"),
    Entry("register", "register", "VGPR", "a thread's own storage on the chip, 32 bits wide"),
    Entry("global memory", "global memory", "global memory", "memory that all blocks access"),
    Entry("shared memory", "local memory", "shared memory (LDS)", "memory of a block, on the chip"),
    Entry("local memory", "private memory", "private memory", "a thread's own, in device memory"),
    Entry("constant memory", "constant memory", "constant memory", "read-only, one word to all"),
    Entry("barrier", "barrier", "barrier", "where threads of a block wait for each other"),
    Entry("atomic", "atomic", "atomic", "a read, change and write that nothing comes between"),
    Entry("sector", "sector", "sector", "32 bytes of memory, aligned: what a cache moves"),
    Entry("line", "cache line", "cache line", "128 bytes of memory, aligned: what a tag names"),
    Entry("bank", "bank", "bank", "a part of shared memory that serves one word at a time"),
    Entry("occupancy", "occupancy", "occupancy", "warps on an SM over the most that it can hold"),
    Entry("divergence", "divergence", "divergence", "lanes of a warp that go different ways"),
)

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
    """docs/glossary.md."""
    lines = [
        "# Glossary",
        "",
        "CUDA's words are used throughout. `warploom profile --terms opencl` (or `hip`) writes a"
        " report in the others.",
        "",
        "| CUDA | OpenCL | HIP | what it is |",
        "| --- | --- | --- | --- |",
        *(f"| {e.cuda} | {e.opencl} | {e.hip} | {e.meaning} |" for e in GLOSSARY),
        "",
    ]
    return "\n".join(lines)
