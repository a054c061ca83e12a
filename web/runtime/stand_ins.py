"""Modules without contents in the place of LLVM and Numba, for a Python that has neither.

The reference machine imports modules that define compiled helpers, but computes by their Python
functions. Every name of a stand-in is a class that does nothing; what computes with one fails.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any

BLOCKED = ("cuda", "nvidia", "lz4", "backports", "starlette", "uvicorn", "typer", "rich")


class Anything(type):
    """A class that has every attribute, and is every type."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})

    def __getitem__(cls, key: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls

    def __call__(cls, *given: object, **named: object) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) else cls


class Empty(types.ModuleType):
    """A module that has every name."""

    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class Finder(MetaPathFinder, Loader):
    """Finds empty modules in the place of `emptied`, and none of BLOCKED."""

    def __init__(self, emptied: Sequence[str]) -> None:
        self.emptied = emptied

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        top = fullname.split(".")[0]
        if top in BLOCKED:
            raise ImportError(f"{fullname} is not there")
        return ModuleSpec(fullname, self, is_package=True) if top in self.emptied else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass
