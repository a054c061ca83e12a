"""Keeps machine code between runs, in the user's cache.

An entry's name says everything that its content depends on: the sources that made it, the versions
and the processor, and what it was made from. So nothing in here is ever wrong, only missing:
removing the folder, or any part of it, costs nothing but time. An entry carries its own checksum;
one that is damaged counts as missing. Two processes may write one entry at once.

What is found here is executed, so the folder is used only if nobody but this user and root can
write to it; it is made with mode 0700.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import warnings
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import llvmlite
import numpy as np

from warploom.llvm.target import processor

MOST_BYTES = 1 << 30
"""How large the cache may become; what was used longest ago goes first."""

WRITES_PER_CLEANUP = 64
"""One write in so many, by its name, looks whether the cache is too large: that takes longer the
more entries the folder has."""

_PACKAGE = Path(__file__).parent.parent
SOURCES = (
    *("core", "simt", "cost", "texture", "asynchronous", "detector", "isa", "ptx", "program"),
    *("analysis", "llvm", "abi", "helpers", "ir", "passes", "lower", "compilation"),
)
"""The parts of the package that decide what code a kernel becomes."""

_CHECKSUM_BYTES = 32


def cache_directory() -> Path:
    """Returns the folder of the cache: WARPLOOM_CACHE_DIR, else `warploom` in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("WARPLOOM_CACHE_DIR") or Path(base) / "warploom")


def find(kind: str, key: str) -> bytes | None:
    """Returns the content of an entry; None where there is none that is whole."""
    path = _path(kind, key)
    try:
        if not (_is_ours(path.parent) and _is_ours(path)):
            return None
        data = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # the folder may be read-only
        os.utime(path)
    checksum, content = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    return content if hashlib.sha256(content).digest() == checksum else None


def keep(kind: str, key: str, content: bytes) -> None:
    """Write an entry so that another process sees all of it or nothing; a failure does no harm."""
    import tempfile

    path = _path(kind, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent):
            return
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(name, path)
        if zlib.crc32(path.name.encode()) % WRITES_PER_CLEANUP == 0:
            _remove_oldest(path.parent, MOST_BYTES)
    except OSError:
        return


def key_of(parts: Iterable[str], sources: Iterable[str] = SOURCES) -> str:
    """Return the key of what is made from `parts` by these parts of the package, here and now."""
    return _key(_fingerprint(tuple(sources)).encode(), parts)


def key_of_sources(parts: Iterable[str], sources: Iterable[str]) -> str:
    """Return the key of what is made from `parts` by these parts of the package, wherever that
    was."""
    return _key(b"".join(_DIGESTS[part] for part in sources), parts)


def _key(begin: bytes, parts: Iterable[str]) -> str:
    digest = hashlib.sha256(begin)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def _path(kind: str, key: str) -> Path:
    return cache_directory() / f"{kind}-{key}"


def _is_ours(path: Path) -> bool:
    """Returns whether only this user and root can have written a file, or to a folder. Warns once
    of a folder that others can write to."""
    if not hasattr(os, "getuid"):
        return True
    found = path.stat()
    ours = found.st_uid in (os.getuid(), 0) and not found.st_mode & 0o022
    if not ours and path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"warploom: {path} is not used as a cache of compiled code, for other users can write"
            f" to it: `chmod go-w {path}`, or name another folder in WARPLOOM_CACHE_DIR",
            stacklevel=2,
        )
    return ours


_warned: set[Path] = set()


def _digest(part: str) -> bytes:
    """Stands for the sources of a part of the package."""
    digest = hashlib.sha256()
    for source in sorted((_PACKAGE / part).rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.digest()


_DIGESTS = {part: _digest(part) for part in (*SOURCES, "machinecode", "timing")}
"""Taken as this module is imported, as its neighbours are: sources that change while a process runs
are not what it runs."""


@lru_cache
def _fingerprint(sources: tuple[str, ...]) -> str:
    """Stands for the sources, the versions of what compiles them, and the processor."""
    digest = hashlib.sha256(b"".join(_DIGESTS[part] for part in sources))
    versions = (_numba_version(), llvmlite.__version__, np.__version__)
    digest.update("\n".join([*versions, *processor()]).encode())
    return digest.hexdigest()


def _numba_version() -> str:
    """Stands for the version of Numba, without importing what makes nothing in most processes."""
    found = importlib.util.find_spec("numba")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("_version.py").read_text()


def _remove_oldest(folder: Path, most: int) -> None:
    """Remove what was used longest ago until the rest fits."""
    with os.scandir(folder) as entries:
        told = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
    found = sorted((stat.st_mtime, stat.st_size, path) for stat, path in told)
    excess = sum(size for _, size, _ in found) - most
    for _, size, path in found:
        if excess <= 0:
            return
        Path(path).unlink(missing_ok=True)
        excess -= size
