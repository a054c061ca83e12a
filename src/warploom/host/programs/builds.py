"""Builds kernels for devices: sources become PTX, and PTX becomes what machines run.

The devices of one tuning share their builds (`shared_builds`): what configurations have in common
is compiled, parsed, analysed, assembled and matched once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from warploom.core.collector import collector_paused
from warploom.core.lazy import cached_property
from warploom.devices.spec import DeviceSpec
from warploom.frontends.cuda_cpp import FIRST_WITH_FMA
from warploom.host.programs.assembly import Assembly, NoAssembly, assembly_of
from warploom.host.programs.resources import Resources, resources_of
from warploom.host.programs.sources import compiled, verified
from warploom.host.programs.targets import check_instructions
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.module import Function, Module

T = TypeVar("T")

KEPT = 4
"""So many results of each kind are kept: a large kernel takes tens of megabytes, and a tuning tries
configurations one after the other that have the most in common."""


class BuiltKernel:
    """A kernel of a PTX module as a device of that kind runs it, whatever the launch."""

    def __init__(self, ptx: Module, name: str, spec: DeviceSpec, stack_bytes: int) -> None:
        self._ptx, self._name, self._spec, self._stack_bytes = ptx, name, spec, stack_bytes

    @cached_property
    def program(self) -> Program:
        """Returns the kernel as machines run it; UnsupportedInstruction where the device cannot."""
        with collector_paused():
            has_fma = self._spec.compute_capability >= FIRST_WITH_FMA
            program = build(self._ptx, self._name, self._stack_bytes, has_fma=has_fma)
        check_instructions(program, self._spec)
        # What is kept of a program refers to it: a cycle, which would wait for a full collection.
        weakref.finalize(self, program.cache.clear).atexit = False
        return program

    @cached_property
    def function(self) -> Function:
        """Returns the kernel as PTX declares it."""
        return next(entry for entry in self._ptx.entries if entry.name == self._name)

    @cached_property
    def resources(self) -> Resources:
        """Registers and barriers, as ptxas says or as estimated."""
        return resources_of(self.program, self.function, self._spec)

    @cached_property
    def assembly(self) -> Assembly | NoAssembly:
        """Returns its machine code for the device, or why there is none."""
        return assembly_of(self.program, self._spec.compute_capability)


@dataclass(frozen=True)
class Request:
    """A text to be compiled: its language, its name in messages, and the compiler's options."""

    text: str
    language: str
    name: str
    options: tuple[str, ...] = ()


@dataclass
class Builds:
    """Builds what it is asked for; remembers the last `most` results of each kind, and builds none
    of these again. What a source includes is not looked at again either."""

    most: int = 0
    _texts: dict[object, tuple[str, str]] = field(default_factory=dict[object, tuple[str, str]])
    _modules: dict[object, Module] = field(default_factory=dict[object, Module])
    _kernels: dict[object, BuiltKernel] = field(default_factory=dict[object, BuiltKernel])

    def ptx(self, request: Request, spec: DeviceSpec) -> Module:
        """Returns a text as verified PTX. Raises CompileError or PtxSyntaxError."""
        given = request.text, request.language, request.name, spec.compute_capability
        key = *given, request.options
        text, name = self._get(self._texts, key, lambda: compiled(*key))
        whole = text, name, spec.warp_size
        return self._get(self._modules, whole, lambda: verified(*whole))

    def kernel(self, ptx: Module, name: str, spec: DeviceSpec, stack_bytes: int) -> BuiltKernel:
        """Returns a kernel of a PTX module for a device."""
        key = ptx.text, ptx.name, name, repr(spec), stack_bytes
        return self._get(self._kernels, key, lambda: BuiltKernel(ptx, name, spec, stack_bytes))

    def _get(self, known: dict[object, T], key: object, make: Callable[[], T]) -> T:
        """Returns what is known by a key, else what is made now."""
        if not self.most:
            return make()
        found = known.pop(key, None)
        known[key] = make() if found is None else found
        while len(known) > self.most:
            known.pop(next(iter(known)), None)
        return known[key]


_SHARED: ContextVar[Builds | None] = ContextVar("shared builds", default=None)


@contextmanager
def sharing(builds: Builds) -> Generator[None]:
    """Devices that are made within build with these: what one has built is there for all."""
    token = _SHARED.set(builds)
    try:
        yield
    finally:
        _SHARED.reset(token)


def builds_here() -> Builds:
    """Returns the builds of a device that is made now: those that are shared here, or its own."""
    shared = _SHARED.get()
    return Builds() if shared is None else shared


@lru_cache(maxsize=1)
def shared_builds(tuning: str) -> Builds:
    """Returns the builds that the configurations of a tuning share in this process; `tuning` stands
    for it, and there is one at a time."""
    return Builds(KEPT)
