"""Compiles, caches and loads the functions that the code of many kernels calls: each is compiled
once, stored in the disk cache, and loaded once in a process.

A function's name identifies everything that its code depends on besides the package's sources, so
kernels find a loaded function by name alone. The package ships those that many kernels call
(`tools/build_helpers.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm
import msgspec
from llvmlite import ir

from warploom.helpers.objects import SHIPPED, write_whole
from warploom.helpers.table import load_helpers
from warploom.llvm import disk_cache
from warploom.llvm.lanes import Value
from warploom.llvm.objects import object_of
from warploom.llvm.opt_level import Effort
from warploom.llvm.printing import ModulePrinter
from warploom.llvm.target import Processor, levels, target_machine

Define = Callable[[ir.Module], None]
"""Emits a function's definition, under its name, into a module."""

KIND = "function"
"""The kind under which the disk cache holds such functions."""


class SharedFunctions:
    """Declares the shared functions that one module calls: functions compiled once for all kernels.
    `definitions` holds, by name, how to define each, for `load_functions`."""

    def __init__(self, module: ir.Module) -> None:
        """Begins with no function declared in `module`; `definitions` gets that of each declared
        one, by name."""
        self._module = module
        self.definitions: dict[str, Define] = {}

    def declare(self, name: str, type: ir.FunctionType, define: Define) -> Value:
        """Declares a function in the module on first use, and returns it; `define` is stored for
        `load_functions`, which compiles it if no cache has it.
        """
        if name not in self.definitions:
            ir.Function(self._module, type, name)
            self.definitions[name] = define
        return self.declared(name)

    def declared(self, name: str) -> Value:
        """Returns a function that has been declared; raises KeyError otherwise."""
        return self._module.globals[name]


def load_functions(names: Iterable[str], definitions: Mapping[str, Define]) -> bool:
    """Loads functions into the process, so that kernels link against them; those loaded before are
    left as they are, and those that neither the package nor the disk cache has are compiled.
    Returns False, and loads none, if one to be compiled has no definition."""
    missing = {name: _object(name, definitions) for name in names if name not in _loaded}
    objects = [code for code in missing.values() if code is not None]
    if len(objects) < len(missing):
        return False
    if not missing:
        return True
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    for code in objects:
        load_helpers(code)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    for name in missing:
        llvm.add_symbol(name, engine.get_function_address(name))
        _loaded[name] = engine
    return True


def cache_functions(definitions: Mapping[str, Define]) -> None:
    """Compiles the functions that no cache has, and stores them in the disk cache, for another
    process that loads them."""
    for name in definitions:
        _object(name, definitions)


_loaded: dict[str, llvm.ExecutionEngine] = {}
"""By name, the engine that owns a function's code."""


def _object(name: str, definitions: Mapping[str, Define]) -> bytes | None:
    """Returns a function's object code: as shipped with the package, else from the disk cache, else
    compiled and stored there. Returns None if neither has it and it has no definition."""
    shipped = _shipped().get(name)
    if shipped is not None:
        return shipped
    key = disk_cache.key_of((name,))
    cached = disk_cache.find(KIND, key)
    if cached is None and name in definitions:
        cached = _compiled(name, definitions[name])
        disk_cache.store(KIND, key, cached)
    return cached


def _compiled(name: str, define: Define, processor: Processor | None = None) -> bytes:
    """Compiles a function into object code for a processor, by default the host's."""
    module = ir.Module(name)
    define(module)
    return object_of(ModulePrinter(module).text(), Effort.FULL, name, processor)


# ---- the functions that the package holds ------------------------------------------------------


def ship_functions(
    definitions: Mapping[str, Define], processors: Iterable[Processor], folder: Path = SHIPPED
) -> list[Path]:
    """Writes the object code of all functions to one file for each processor in a folder, after it
    removes the files of this platform that are there. Returns the paths."""
    for old in folder.glob(f"{KIND}s-{sys.platform}-*"):
        old.unlink()
    return [
        write_whole(
            folder / _file(processor),
            msgspec.msgpack.encode(
                {name: _compiled(name, define, processor) for name, define in definitions.items()}
            ),
        )
        for processor in processors
    ]


@lru_cache
def _shipped() -> Mapping[str, bytes]:
    """Returns the object code that the package ships, by function name, for the best level of this
    processor that has a file; empty if none has."""
    for processor in levels():
        path = SHIPPED / _file(processor)
        if path.is_file():
            return msgspec.msgpack.decode(path.read_bytes(), type=dict[str, bytes])
    return {}


def _file(processor: Processor) -> str:
    """Returns the name of the file of a processor's functions, with a digest of the sources, so
    that changed sources never load old code.
    """
    sources = disk_cache.key_of_sources((KIND,), disk_cache.SOURCES)
    return f"{KIND}s-{sys.platform}-{processor.name}-{sources}"
