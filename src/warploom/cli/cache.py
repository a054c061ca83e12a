"""`warploom cache`: the size of the cache of compiled code, and its removal."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from warploom.llvm.disk_cache import MOST_BYTES, cache_directory, clear, sizes
from warploom.report.console import terminal

KINDS = {
    "kernel": "machine code of kernels",
    "function": "functions shared by many kernels",
    "seconds": "execution counts of baseline code, used to select the kernels to optimize",
    "ptx": "PTX of CUDA C++ sources",
    "ptxas": "register counts from NVIDIA's assembler",
    "machinecode": "machine code from NVIDIA's assembler, for modelled time",
    "flow": "execution counts of machine instructions, used to model times",
}
"""What entries of a kind hold. All other kinds are names of the engine's own functions."""

HELPERS = "helpers"


def cache(
    empty: Annotated[bool, typer.Option("--clear", help="Remove all entries.")] = False,
) -> None:
    """Show the folder and the size of the compiled-code cache, or clear the cache.

    You can clear the cache at any time: Warploom then compiles the code again when it is needed. To
    use another folder, set WARPLOOM_CACHE_DIR.

    Examples: `warploom cache`, `warploom cache --clear`.
    """
    folder = cache_directory()
    if empty:
        removed = clear()
        print(f"{folder}: {removed:,} entries removed")
        return
    held: dict[str, list[int]] = {}
    for kind, entries in sizes().items():
        held.setdefault(kind if kind in KINDS else HELPERS, []).extend(entries)
    table = Table(box=None, pad_edge=False)
    table.add_column("Kind")
    for heading in ("Entries", "MiB"):
        table.add_column(heading, justify="right")
    table.add_column("Content")
    for kind, entries in sorted(held.items()):
        table.add_row(
            kind,
            f"{len(entries):,}",
            _mib(sum(entries)),
            KINDS.get(kind, "the engine's own functions"),
        )
    terminal().print(table)
    total = sum(map(sum, held.values()))
    print(f"{folder}: {_mib(total)} MiB used; the limit is {MOST_BYTES >> 20:,} MiB")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.1f}"
