"""Finds the machine code of helpers: shipped with the package, kept in the user's cache, or made.

The package holds objects for levels of x86-64 and for aarch64 (`tools/build_helpers.py` makes them
when the package is built). Their names say which sources they were made from, so that changed
sources never meet an old object. Where none fits, Numba and LLVM make one for this processor, which
takes about half a minute, and the cache keeps it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from warploom.helpers.compiler import linked, object_for
from warploom.llvm import disk_cache
from warploom.llvm.target import Processor, levels, processor

SOURCES = ("simt", "cost", "texture", "asynchronous", "detector", "llvm", "abi", "helpers")
"""The parts of the package that helpers are compiled from."""

SHIPPED = Path(__file__).parent / "objects"
"""The objects that the package holds."""


@dataclass(frozen=True, slots=True)
class HelperObject:
    """Helpers that are one object: `file` names it; `signatures` are their names and types, as
    `helper_compiler.Typed` has them; `functions` imports them, which is done only to compile them.
    `sources` are the parts of the package that they depend on."""

    file: str
    signatures: tuple[tuple[str, str], ...]
    functions: Callable[[], Mapping[str, Callable[..., object]]]
    sources: tuple[str, ...] = SOURCES

    def code(self) -> bytes:
        """Returns the object for this processor."""
        return self._shipped() or self._cached()

    def ship(self, built_for: Iterable[Processor], folder: Path = SHIPPED) -> list[Path]:
        """Writes the object for each of the processors to a folder; removes those of old sources.
        Returns the paths."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{self.file}-{sys.platform}-*"):
            old.unlink()
        module = self._compiled()
        return [
            write_whole(folder / self._shipped_name(one), object_for(module, one))
            for one in built_for
        ]

    def _compiled(self) -> llvm.ModuleRef:
        functions = self.functions()
        return linked({name: (functions[name], types) for name, types in self.signatures})

    def _parts(self) -> list[str]:
        return [part for signature in self.signatures for part in signature]

    def _shipped_name(self, level: Processor) -> str:
        sources = disk_cache.key_of_sources(self._parts(), self.sources)
        return f"{self.file}-{sys.platform}-{level.name}-{sources}"

    def _shipped(self) -> bytes | None:
        """Returns the package's object for the highest level that this computer has."""
        for level in levels():
            path = SHIPPED / self._shipped_name(level)
            if path.is_file():
                return path.read_bytes()
        return None

    def _cached(self) -> bytes:
        key = disk_cache.key_of(self._parts(), self.sources)
        content = disk_cache.find(self.file, key)
        if content is None:
            _report_compiling()
            content = object_for(self._compiled(), processor())
            disk_cache.keep(self.file, key, content)
        return content


def write_whole(path: Path, content: bytes) -> Path:
    """Writes a file so that another process sees all of it or nothing."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).chmod(0o644)
    os.replace(name, path)
    return path


def _report_compiling() -> None:
    """Writes to a terminal why the first launch on a computer takes long."""
    if sys.stderr.isatty():
        sys.stderr.write(
            "warploom: compiling its own machine code for this processor, once; this takes about"
            f" half a minute (kept in {disk_cache.cache_directory()})\n"
        )
