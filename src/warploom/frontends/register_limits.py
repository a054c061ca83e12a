"""Writes a limit on registers into PTX, where compilers pass theirs to ptxas alone."""

from __future__ import annotations

import re

_BARE_ENTRY = re.compile(r"(\.entry\s+[\w$]+\s*\([^)]*\))\s*\{")


def limit_registers(ptx: str, registers: str) -> str:
    """Returns the PTX with `.maxnreg` in each kernel that has no directive of its own.

    Kernels with launch bounds keep those (CUDA C++ Programming Guide, "Launch Bounds"), as do those
    that have a limit of their own.
    """
    return _BARE_ENTRY.sub(rf"\1\n.maxnreg {registers}\n{{", ptx)
