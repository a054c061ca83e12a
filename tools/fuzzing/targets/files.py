"""Files and images that Warploom reads, with bytes mutated: they are read as they are, or refused
with the error that the reader promises, in bounded memory and time.

Traces hold addresses, which differ from process to process; so a finding keeps its bytes."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import lz4.block
import numpy as np

import warploom as wl
from fuzzing.cases import Case, Target
from fuzzing.drawing import mutate
from warploom.clients.fatbin import NoPtx, has_ptx, ptx_of
from warploom.core import zstd
from warploom.core.errors import WarploomError
from warploom.llvm.disk_cache import find, store
from warploom.observe.trace import Trace
from warploom.timing.saved import ReplayState

MOST_BYTES = 3 << 29
"""A file may take 1.5 GiB of the host: what the largest that is read unpacks to, and half of it."""

PTX = """.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .u32 %t;
.reg .u64 %d<2>;
ld.param.u64 %d0, [out];
mov.u32 %t, %tid.x;
mul.wide.u32 %d1, %t, 4;
add.u64 %d1, %d0, %d1;
st.global.u32 [%d1], %t;
ret;
}
"""
PLAIN, LZ4, ZSTD = 0x11, 0x2011, 0x8011


def fat_entry(architecture: int, flags: int, text: bytes) -> bytes:
    """Returns an entry of a fat binary: PTX, stored as its flags say, behind 64 bytes of header."""
    packed = {
        PLAIN: lambda: text,
        LZ4: lambda: lz4.block.compress(text, store_size=False),
        ZSTD: lambda: zstd.compress(text),
    }[flags]()
    stored = packed.ljust(-(-len(packed) // 8) * 8, b"\0")
    sizes = (len(stored), len(packed), 0, 0, 0, architecture, 0, 0, flags, 0, len(text))
    return struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, *sizes) + stored


@cache
def fat_binaries() -> tuple[bytes, ...]:
    """Fat binaries with plain and compressed PTX, and one in other data."""
    text = (PTX * 3).encode() + b"\0"
    parts = [fat_entry(70 + 10 * n, flags, text) for n, flags in enumerate((PLAIN, LZ4, ZSTD))]
    images = [
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
        for body in (*parts, b"".join(parts))
    ]
    return *images, images[3] + images[1]


def read_fat_binary(data: bytes) -> None:
    """Reads the PTX of an image."""
    has_ptx(data)
    for capability in ((7, 0), (9, 0)):
        with suppress(NoPtx):
            ptx_of(data, capability)


@cache
def traces() -> tuple[bytes, ...]:
    """Traces of both engines, unpacked."""
    found: list[bytes] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device("v100", memory_bytes=1 << 28)
        ready = gpu.compile(PTX, "ptx")["k"][2, 40]
        trace = ready.trace(gpu.zeros(40, np.uint32), engine=engine)
        found.append(gzip.decompress(trace.to_bytes()))
    return tuple(found)


def damage_trace(data: bytes, rng: random.Random) -> bytes:
    """Changes a trace before it is packed, or the packed file."""
    if rng.random() < 0.7:
        return gzip.compress(mutate(data, rng), mtime=0)
    return mutate(gzip.compress(data, mtime=0), rng)


def read_trace(data: bytes) -> None:
    """Reads a trace, and what its reader derives from it."""
    with suppress(WarploomError):
        trace = Trace.from_bytes(data)
        Trace.from_bytes(trace.to_bytes())
        for warp in trace.warps:
            for _ in trace.warp(warp.block, warp.warp).steps:
                pass


@cache
def states() -> tuple[bytes, ...]:
    """A state of a replay with words that mean nothing: NumPy's .npz."""
    words = np.arange(100, dtype=np.int64)
    state = ReplayState(7, *[words] * 7)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        state.save(path)
        with ZipFile(path) as saved:
            parts = {name: saved.read(name) for name in saved.namelist()}
    return (archive(parts),)


def archive(parts: dict[str, bytes], method: int = ZIP_DEFLATED) -> bytes:
    """Returns a zip file of these parts, without the time of the day."""
    made = io.BytesIO()
    with ZipFile(made, "w") as file:
        for name, part in parts.items():
            file.writestr(ZipInfo(name), part, method)
    return made.getvalue()


def damage_state(data: bytes, rng: random.Random) -> bytes:
    """Changes a part of the archive and packs it again, or the archive itself."""
    if rng.random() < 0.3:
        return mutate(data, rng)
    with ZipFile(io.BytesIO(data)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    name = rng.choice(sorted(parts))
    head = rng.choice((80, 128, len(parts[name])))  # mostly the type and the shape of an array
    parts[name] = mutate(parts[name][:head], rng) + parts[name][head:]
    return archive(parts, rng.choice((ZIP_STORED, ZIP_DEFLATED)))


def read_state(data: bytes) -> None:
    """Reads the state of a replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        path.write_bytes(data)
        with suppress(WarploomError):
            ReplayState.load(path)


CACHE = "WARPLOOM_CACHE_DIR"
CONTENT = bytes(range(256)) * 8


@cache
def own_cache() -> tempfile.TemporaryDirectory[str]:
    """Returns a folder for the cache of this process."""
    return tempfile.TemporaryDirectory()


@contextmanager
def cache_of_this_process() -> Iterator[Path]:
    """Moves the cache of machine code to a folder of this process."""
    before = os.environ.get(CACHE)
    os.environ[CACHE] = own_cache().name
    try:
        yield Path(own_cache().name)
    finally:
        os.environ.pop(CACHE)
        os.environ.update({} if before is None else {CACHE: before})


@cache
def cache_entries() -> tuple[bytes, ...]:
    """An entry of the cache of machine code, as it is kept."""
    with cache_of_this_process() as folder:
        store("fuzz", "whole", CONTENT)
        return ((folder / "fuzz-whole").read_bytes(),)


def read_cache_entry(data: bytes) -> None:
    """Finds an entry, which is whole or counts as missing."""
    with cache_of_this_process() as folder:
        path = folder / "fuzz-damaged"
        path.write_bytes(data)
        path.chmod(0o600)
        found = find("fuzz", "damaged")
    assert found in (None, CONTENT), "a damaged entry of the cache is taken for whole"


def file_target(
    name: str,
    originals: Callable[[], tuple[bytes, ...]],
    read: Callable[[bytes], None],
    damage: Callable[[bytes, random.Random], bytes] = mutate,
) -> Target:
    def generate(seed: int) -> Case:
        rng = random.Random(seed)
        return Case(name, damage(rng.choice(originals()), rng))

    def check(case: Case) -> None:
        assert isinstance(case.content, bytes)
        read(case.content)

    return Target(name, generate, check, weight=0.3, seconds=30, most_bytes=MOST_BYTES)


TARGETS = (
    file_target("fatbin", fat_binaries, read_fat_binary),
    file_target("trace", traces, read_trace, damage_trace),
    file_target("state", states, read_state, damage_state),
    file_target("cache", cache_entries, read_cache_entry),
)
