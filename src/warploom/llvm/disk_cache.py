"""Stores compiled machine code in files of the user's cache, and finds it there in later processes.

An entry is a file named KIND-KEY. The key is a digest of everything that the content depends on:
the package's own sources, the versions of Numba, llvmlite and NumPy, the processor, and the input
(for a kernel: the program, its variant and the access rules). So entries are never stale, and
removing the folder costs only time. A file begins with the SHA-256 of its content; a damaged entry
counts as missing. Two processes may write the same entry at once.

Entries are executed, so the folder is used only if no user but this one and root can write to it;
it is created with mode 0700.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import stat
import warnings
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import llvmlite
import numpy as np

from warploom.core.user_folders import user_folder
from warploom.llvm.target import processor

MOST_BYTES = 1 << 30
"""The size that the cache may reach; beyond it the least recently used entries are removed."""

WRITES_PER_CLEANUP = 64
"""One write in 64, chosen by the entry's name, checks the size of the cache: the check lists the
whole folder, so its time grows with the number of entries."""

_PACKAGE = Path(__file__).parent.parent
SOURCES = (
    *("core", "simt", "cost", "texture", "asynchronous", "detector", "isa", "ptx", "program"),
    *("analysis", "llvm", "abi", "helpers", "ir", "passes", "lower", "compilation"),
)
"""The subpackages whose sources decide what code a kernel is compiled to."""

_CHECKSUM_BYTES = 32

KEY_DIGITS = 40


def cache_directory() -> Path:
    """Returns the folder of the cache: WARPLOOM_CACHE_DIR, else `warploom` in XDG_CACHE_HOME or
    ~/.cache (`core.user_folders`)."""
    named = os.environ.get("WARPLOOM_CACHE_DIR")
    return Path(named) if named else user_folder("XDG_CACHE_HOME", ".cache") / "warploom"


def find(kind: str, key: str) -> bytes | None:
    """Returns the content of the entry named by `kind` and `key`, or None if it is missing,
    damaged, or if other users could have written it. Updates the file's time of use, by which old
    entries are removed."""
    path = _path(kind, key)
    try:
        if not (_is_ours(path.parent) and path.is_file() and _is_ours(path)):
            return None  # a pipe, for example, would be read without an end
        data = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):  # the folder may be read-only
        os.utime(path)
    checksum, content = data[:_CHECKSUM_BYTES], data[_CHECKSUM_BYTES:]
    return content if hashlib.sha256(content).digest() == checksum else None


def store(kind: str, key: str, content: bytes) -> None:
    """Writes an entry (the SHA-256 of `content`, then `content`) atomically: another process sees
    all of it or nothing. For one name in 64, also removes the least recently used files beyond
    MOST_BYTES (1 GiB). Writes nothing if the folder is of a user other than this one and root, or
    others can write to it; an OSError (a full disk, a read-only folder) is ignored."""
    import tempfile

    path = _path(kind, key)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent):
            return
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(content).digest() + content)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        if zlib.crc32(path.name.encode()) % WRITES_PER_CLEANUP == 0:
            _remove_oldest(path.parent, MOST_BYTES)
    except OSError:
        return


def sizes() -> dict[str, list[int]]:
    """Returns the sizes in bytes of all entries by kind; empty without a folder."""
    held: dict[str, list[int]] = {}
    for kind, entry in _entries():
        held.setdefault(kind, []).append(entry.stat().st_size)
    return held


def clear() -> int:
    """Removes all entries, and returns how many there were. Raises OSError if the folder cannot be
    written to."""
    entries = _entries()
    for _, entry in entries:
        entry.unlink(missing_ok=True)
    return len(entries)


def _entries() -> list[tuple[str, Path]]:
    """Returns kind and path of all entries: files named KIND-KEY, as `_path` does. Other files are
    left out; none without a folder."""
    folder = cache_directory()
    paths = folder.iterdir() if folder.is_dir() else ()
    parts = ((path.name.rpartition("-"), path) for path in paths)
    named = ((kind, path) for (kind, _, key), path in parts if len(key) == KEY_DIGITS and kind)
    return [(kind, path) for kind, path in named if path.is_file()]


def key_of(parts: Iterable[str], sources: Iterable[str] = SOURCES) -> str:
    """Returns the key of an entry compiled from `parts` by these `sources` for this processor.

    `parts` are the texts that the content depends on, `sources` names of subpackages. The key also
    covers the versions of Numba, llvmlite and NumPy.
    """
    return _key(_fingerprint(tuple(sources)).encode(), parts)


def key_of_sources(parts: Iterable[str], sources: Iterable[str]) -> str:
    """Returns the key of code compiled from `parts` by these `sources` on any computer.

    Objects that the package ships are named by it: neither processor nor versions are part of it.
    """
    return _key(b"".join(_DIGESTS[part] for part in sources), parts)


def _key(begin: bytes, parts: Iterable[str]) -> str:
    """Returns KEY_DIGITS hexadecimal digits of a digest of a prefix and of texts."""
    digest = hashlib.sha256(begin)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")  # names of files may be any bytes
        # The length in front of a text keeps ("ab", "c") and ("a", "bc") different.
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:KEY_DIGITS]


def _path(kind: str, key: str) -> Path:
    """Returns the path of the entry named by `kind` and `key`, a file KIND-KEY in the folder of the
    cache."""
    return cache_directory() / f"{kind}-{key}"


def _is_ours(path: Path) -> bool:
    """Returns whether a file or folder belongs to this user or root and no group or others can
    write to it; true on systems without user ids. Warns once for each path for which it is false.
    Raises OSError if it is missing."""
    if not hasattr(os, "getuid"):
        return True
    status = path.stat()
    reason = _unusable_because(path, status)
    if reason and path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"warploom: {path} is not used as the cache for compiled code: {reason} set "
            "WARPLOOM_CACHE_DIR to another folder",
            stacklevel=2,
        )
    return not reason


def _unusable_because(path: Path, status: os.stat_result) -> str:
    """Returns why a file or folder is not used, and what to do beside naming another folder; empty
    if nothing is wrong with it."""
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        return "it is not a folder;"
    if status.st_uid not in (os.getuid(), 0):
        return "it belongs to another user;"
    if status.st_mode & 0o022:
        return f"other users can write to it; run `chmod go-w {shlex.quote(str(path))}`, or"
    return ""


_warned: set[Path] = set()


def _digest(part: str) -> bytes:
    """Returns a digest of the Python sources of a subpackage, by which entries of older sources are
    not found."""
    digest = hashlib.sha256()
    for source in sorted((_PACKAGE / part).rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.digest()


_DIGESTS = {part: _digest(part) for part in (*SOURCES, "frontends", "machinecode", "timing")}
"""Digests by subpackage, computed when this module is imported: a file edited while the process
runs is not the code that the process executes."""


@lru_cache
def _fingerprint(sources: tuple[str, ...]) -> str:
    """Returns a digest of the sources of subpackages, the versions of Numba, llvmlite and NumPy,
    and the processor: the part of a key that all entries of a kind share."""
    digest = hashlib.sha256(b"".join(_DIGESTS[part] for part in sources))
    versions = (_numba_version(), llvmlite.__version__, np.__version__)
    digest.update("\n".join([*versions, *processor()]).encode())
    return digest.hexdigest()


def _numba_version() -> str:
    """Returns the text of Numba's version file. Importing Numba would last longer than most
    processes, which compile no helper, run."""
    spec = importlib.util.find_spec("numba")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("_version.py").read_text("utf-8")


def _remove_oldest(folder: Path, most: int) -> None:
    """Removes the least recently used files of a folder, entries or not, until those left have at
    most `most` bytes."""
    with os.scandir(folder) as entries:
        files = [(entry.stat(), entry.path) for entry in entries if entry.is_file()]
    oldest_first = sorted((stat.st_mtime, stat.st_size, path) for stat, path in files)
    excess = sum(size for _, size, _ in oldest_first) - most
    for _, size, path in oldest_first:
        if excess <= 0:
            return
        Path(path).unlink(missing_ok=True)
        excess -= size
