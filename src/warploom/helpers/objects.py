"""Finds the machine code of helpers, the Python functions that compiled kernels call (`table` lists
them): shipped with the package, cached on disk, or compiled now.

The package ships objects for levels of x86-64 and for aarch64 (`tools/build_helpers.py` makes them
when the package is built). A file's name contains the digest of the sources, so that an object of
other sources is not used. If none fits, Numba and LLVM compile one for this processor, which needs
about half a minute, and the disk cache stores it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from warploom.helpers.compiler import compile_object, link_helpers
from warploom.llvm import disk_cache
from warploom.llvm.target import Processor, levels, processor

SOURCES = ("simt", "cost", "texture", "asynchronous", "detector", "llvm", "abi", "helpers")
"""The subpackages that helpers are compiled from."""

SHIPPED = Path(__file__).parent / "objects"
"""The folder of shipped objects."""


@dataclass(frozen=True, slots=True)
class HelperObject:
    """Describes helpers that are compiled to one object file, and provides its machine code.

    `file`: the begin of its files' names. `signatures`: names and types, as
    `helpers.compiler.Typed` has them. `functions`: imports the Python functions, which is done only
    to compile them. `sources`: the subpackages that they depend on.
    """

    file: str
    signatures: tuple[tuple[str, str], ...]
    functions: Callable[[], Mapping[str, Callable[..., object]]]
    sources: tuple[str, ...] = SOURCES

    def code(self) -> bytes:
        """Returns the content of the object for this processor: as shipped, from the disk cache, or
        compiled now.
        """
        return self._shipped() or self._find_or_compile()

    def ship(self, processors: Iterable[Processor], folder: Path = SHIPPED) -> list[Path]:
        """Compiles the object for each of the processors into a folder, as a build of the package
        does; first removes the object's older files for this platform. Returns the paths."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{self.file}-{sys.platform}-*"):
            old.unlink()
        module = self._compile()
        return [
            write_whole(folder / self._shipped_name(each), compile_object(module, each))
            for each in processors
        ]

    def _compile(self) -> llvm.ModuleRef:
        """Imports the functions and compiles them to one LLVM module, not yet optimized."""
        functions = self.functions()
        return link_helpers({name: (functions[name], types) for name, types in self.signatures})

    def _parts(self) -> list[str]:
        """Returns the names and types of the helpers in one list, for digests."""
        return [part for signature in self.signatures for part in signature]

    def _shipped_name(self, level: Processor) -> str:
        """Returns the name of the shipped file for a processor, with a digest of signatures and
        sources.
        """
        sources = disk_cache.key_of_sources(self._parts(), self.sources)
        return f"{self.file}-{sys.platform}-{level.name}-{sources}"

    def _shipped(self) -> bytes | None:
        """Returns the shipped object for the best processor that this computer can run (`levels`;
        with WARPLOOM_PROCESSOR that one alone); None if none has been shipped that was compiled
        from the present sources."""
        for level in levels():
            path = SHIPPED / self._shipped_name(level)
            if path.is_file():
                return path.read_bytes()
        return None

    def _find_or_compile(self) -> bytes:
        """Returns the object from the disk cache; if it is not there, reports that on a terminal,
        compiles it and stores it."""
        key = disk_cache.key_of(self._parts(), self.sources)
        content = disk_cache.find(self.file, key)
        if content is None:
            _report_compiling()
            content = compile_object(self._compile(), processor())
            disk_cache.store(self.file, key, content)
        return content


def write_whole(path: Path, content: bytes) -> Path:
    """Writes a file atomically, readable by all users; returns its path."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).chmod(0o644)
    os.replace(name, path)
    return path


def _report_compiling() -> None:
    """Reports to standard error, if that is a terminal, that helpers are being compiled."""
    if sys.stderr.isatty():
        sys.stderr.write(
            "warploom: compiling helper functions for this processor. This takes about half a "
            "minute and happens only once: the compiled functions are cached in "
            f"{disk_cache.cache_directory()}\n"
        )
