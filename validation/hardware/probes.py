"""Records what probes.cu measures: cycles of chains of dependent instructions, and more.

    python validation/hardware/probes.py prepare FOLDER              # on any computer
    python validation/hardware/probes.py record FOLDER RECORD.json   # on one with a GPU
    python validation/hardware/probes.py slots FOLDER RECORD.json

Each probe runs three times; the record has, by kernel and parameters, the cycles of the last run
and the seconds between two events around it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_name("probes.cu")
SMS = 132
SCRATCH = 1 << 24
"""Words that a probe may use."""
CHAINS = re.compile(r"^(?:ONE|CHAIN)\((\w+), ([\w ]+),", re.M)


def probes() -> Iterator[tuple[str, int, int, int, tuple[int | float, int | float]]]:
    """Yields kernel, blocks, threads, bytes of dynamic shared memory and two parameters."""
    text = SOURCE.read_text("utf-8")
    for name, kind in CHAINS.findall(text):
        values = (1.0, 0.5) if kind in ("float", "double") else (3, 5)
        for threads in (32, 128, 1024):
            yield name, 1, threads, 0, values
    for distinct in (1, 2, 4, 8, 16, 32):
        for threads in (32, 1024):
            yield "constant_distinct", 1, threads, 0, (distinct, 0)
    for name in ("shared_chase", "shared_atomic", "global_atomic", "cached_chase", "l2_chase"):
        for stride in (0, 1, 2, 4, 8, 32):
            for threads in (32, 1024):
                yield name, 1, threads, 0, (stride, 0)
    for name in ("stores", "reductions", "atomics"):
        for stride, words in ((1, 20), (8, 22), (32, 22), (0, 20), (1, 5), (1, 10)):
            yield name, 8 * SMS, 256, 0, (stride, (1 << words) - 1)
    for size in (16, 128, 512, 2048, 8192, 32768):
        for copies in (1, 2, 4):
            yield "bulk_copy", 1, 32, max(1024, size * copies), (size, copies)
            yield "bulk_copy", SMS, 32, max(1024, size * copies), (size, copies)
    for name in ("cluster_load", "cluster_barrier"):
        for threads in (32, 1024):
            yield name, 2, threads, 0, (1, 0)
    for threads in (32, 128, 512, 1024):
        yield "mma_f16", 1, threads, 0, (1, 0)
    for threads in (32, 128, 384, 512, 1024):
        for blocks in (1, 2, 4, 8, 16, 32, 64):
            yield "lone_warps", blocks * SMS, threads, 0, (200_000, 0)
            yield "lone_warps", blocks * SMS, threads, 32768, (200_000, 0)


def prepare(folder: Path) -> None:
    """Compile the probes for compute capability 9.0."""
    from warploom.frontends.cuda_cpp import compile_cuda
    from warploom.host.programs.ptxas import find_tool, identity, run_ptxas

    ptx = compile_cuda(SOURCE.read_text("utf-8"), str(SOURCE), (9, 0))
    ptxas = find_tool("ptxas")
    assert ptxas is not None, 'pip install "warploom[ptxas]"'
    made = run_ptxas(identity(ptxas), "sm_90", ptx, None)
    if made.code:
        raise RuntimeError(made.messages)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "probes.cubin").write_bytes(made.binary)


def slots(folder: Path) -> dict[str, list[list[int]]]:
    """Returns the slots of the warps of eight blocks of one multiprocessor, by threads of a block.

    A slot's sub-partition is its number modulo 4 (%warpid).
    """
    from gpu import Gpu

    gpu = Gpu()
    function = gpu.load((folder / "probes.cubin").read_bytes(), "warp_slots")
    out = gpu.to_device(np.zeros(1 << 18, np.uint32))
    found: dict[str, list[list[int]]] = {}
    for warps in (1, 3, 5, 8, 12, 23, 24, 32):
        blocks = 4 * SMS * min(32, 64 // warps)
        gpu.launch(function, (blocks,), (32 * warps,), 0, (out, 20_000, 0))
        places = gpu.to_host(out)[64 : 64 + blocks * warps].reshape(blocks, warps)
        mine = places[places[:, 0] >> 16 == 0][:8]
        found[str(32 * warps)] = (mine & 0xFFFF).tolist()
    return found


def record(folder: Path) -> list[list[object]]:
    """Returns a row for each probe: kernel, blocks, threads, bytes of dynamic shared memory, two
    parameters, cycles, seconds."""
    from gpu import Gpu

    gpu = Gpu()
    code = (folder / "probes.cubin").read_bytes()
    out = gpu.to_device(np.zeros(SCRATCH, np.uint32))
    rows: list[list[object]] = []
    for name, blocks, threads, shared, values in probes():
        function = gpu.load(code, name)
        launch = function, (blocks,), (threads,), shared, (out, *values)
        seconds = [gpu.launch(*launch) for _ in range(3)]
        rows.append([name, blocks, threads, shared, *values, int(gpu.to_host(out)[0]), seconds[-1]])
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description="Record probes of a GPU.")
    options.add_argument("action", choices=("prepare", "record", "slots"))
    options.add_argument("folder", type=Path)
    options.add_argument("file", type=Path, nargs="?")
    given = options.parse_args()
    if given.action == "prepare":
        prepare(given.folder)
        return
    if given.action == "slots":
        lines = ",\n".join(f'"{n}": {json.dumps(rows)}' for n, rows in slots(given.folder).items())
        given.file.write_text(f"{{\n{lines}\n}}\n", "utf-8")
        return
    rows = ",\n".join(json.dumps(row) for row in record(given.folder))
    given.file.write_text(f"[\n{rows}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
