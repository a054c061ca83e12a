"""Functions that the code of many kernels calls: each is compiled once, kept by the cache, and
loaded once in a process.

A function's name says all that its code depends on beside the package's sources, so that a kernel
finds what another one has loaded by the name alone. The package holds those that many kernels call
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
from warploom.llvm.target import Processor, levels, target_machine

Define = Callable[[ir.Module], None]
"""Emits a function's definition, under its name, into a module."""

KIND = "function"
"""What the cache calls such functions."""


class SharedFunctions:
    """Declares the shared functions that one module calls. `definitions` are those of the declared
    ones, by name."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self.definitions: dict[str, Define] = {}

    def declare(self, name: str, type: ir.FunctionType, define: Define) -> Value:
        """Returns the function of that name in the module, to be called."""
        if name not in self.definitions:
            ir.Function(self._module, type, name)
            self.definitions[name] = define
        return self.declared(name)

    def declared(self, name: str) -> Value:
        """Returns a function that has been declared."""
        return self._module.globals[name]


def load_functions(names: Iterable[str], definitions: Mapping[str, Define]) -> bool:
    """Loads functions into the process, where kernels find them; compiles those that the cache does
    not have. Returns False where one of these has no definition; then none is loaded."""
    missing = {name: _object(name, definitions) for name in names if name not in _loaded}
    objects = [made for made in missing.values() if made is not None]
    if len(objects) < len(missing):
        return False
    if not missing:
        return True
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
    for made in objects:
        load_helpers(made)
        engine.add_object_file(llvm.ObjectFileRef.from_data(made))
    engine.finalize_object()
    for name in missing:
        llvm.add_symbol(name, engine.get_function_address(name))
        _loaded[name] = engine
    return True


_loaded: dict[str, llvm.ExecutionEngine] = {}
"""By name, the engine that keeps a function's code where it is."""


def _object(name: str, definitions: Mapping[str, Define]) -> bytes | None:
    """Returns a function's object; None where neither the package nor the cache has it and it is
    not defined."""
    shipped = _shipped().get(name)
    if shipped is not None:
        return shipped
    key = disk_cache.key_of((name,))
    found = disk_cache.find(KIND, key)
    if found is None and name in definitions:
        found = _compiled(name, definitions[name])
        disk_cache.store(KIND, key, found)
    return found


def _compiled(name: str, define: Define, processor: Processor | None = None) -> bytes:
    module = ir.Module(name)
    define(module)
    return object_of(str(module), Effort.FULL, name, processor)


# ---- the functions that the package holds ------------------------------------------------------


def ship_functions(
    definitions: Mapping[str, Define], processors: Iterable[Processor], folder: Path = SHIPPED
) -> list[Path]:
    """Writes the objects of functions for each of the processors to a folder, in place of older
    ones. Returns the paths."""
    for old in folder.glob(f"{KIND}s-{sys.platform}-*"):
        old.unlink()
    return [
        write_whole(
            folder / _file(one),
            msgspec.msgpack.encode(
                {name: _compiled(name, define, one) for name, define in definitions.items()}
            ),
        )
        for one in processors
    ]


@lru_cache
def _shipped() -> Mapping[str, bytes]:
    """Returns the objects that the package holds for this processor, by the functions' names."""
    for level in levels():
        path = SHIPPED / _file(level)
        if path.is_file():
            return msgspec.msgpack.decode(path.read_bytes(), type=dict[str, bytes])
    return {}


def _file(level: Processor) -> str:
    """Returns a name that says what the functions were made from, so that changed sources never
    meet old ones."""
    sources = disk_cache.key_of_sources((KIND,), disk_cache.SOURCES)
    return f"{KIND}s-{sys.platform}-{level.name}-{sources}"
