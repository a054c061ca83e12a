"""Chooses between code of a kernel that is compiled fast and code that runs fast.

A kernel begins in baseline code (`lower.baseline`). Once its launches have run for as long in it
as optimising it may take, it is optimised: so compiling never takes much longer than running does.
Both do and count the same.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from warploom.compilation.jit import CompiledKernel, compile_kernel, find_kernel
from warploom.core.errors import CompileError
from warploom.core.interrupts import interrupts_held
from warploom.cost.device_rules import AccessRules
from warploom.ir.variant import KernelVariant
from warploom.llvm.opt_level import BASELINE, VARIABLE, is_long
from warploom.machine.compiled.compile_time import compiling
from warploom.program.program import Program

SECONDS, SECONDS_AN_INSTRUCTION = 0.05, 0.005
"""Seconds that optimising takes, about: of 12 kernels of benchmarks/families of 52 to 707
PTX instructions, it took 3 to 10 ms an instruction."""


@dataclass
class Tiers:
    """The code of a program for launches of one variant. `seconds`: the seconds that launches
    have run in baseline code."""

    program: Program
    rules: AccessRules
    variant: KernelVariant
    seconds: float = 0.0
    _baseline: CompiledKernel | None = None
    _optimised: CompiledKernel | None = None
    _stays_baseline: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kernel(self) -> CompiledKernel:
        """Returns the code for a launch that begins now."""
        if self._optimised is not None:
            return self._optimised
        level = os.environ.get(VARIABLE)
        if level == BASELINE and self._has_baseline:
            return self.baseline()
        if level or not self._has_baseline:
            return self.optimised()
        if self._baseline is None:
            self._optimised = find_kernel(self.program, self.rules, self.variant)
            if self._optimised is not None:
                return self._optimised
        optimised = self.optimised_when_due()
        return self.baseline() if optimised is None else optimised

    @property
    def _has_baseline(self) -> bool:
        """Returns whether there is baseline code for such launches: it takes no notes of what it
        does."""
        variant = self.variant
        return not variant.is_watched and variant.sanitizes is None and variant.debugging is None

    def baseline(self) -> CompiledKernel:
        """Returns baseline code, compiled when it is first asked for."""
        with self._lock, interrupts_held(), compiling():
            if self._baseline is None:
                variant = self.variant.for_baseline()
                self._baseline = compile_kernel(self.program, self.rules, variant)
            return self._baseline

    def optimised(self) -> CompiledKernel:
        """Returns optimised code, compiled when it is first asked for."""
        with self._lock, interrupts_held(), compiling():
            if self._optimised is None:
                self._optimised = compile_kernel(self.program, self.rules, self.variant)
            return self._optimised

    def optimised_when_due(self) -> CompiledKernel | None:
        """Returns optimised code if the kernel is worth it by now; else None."""
        if self._stays_baseline or self.seconds < self._threshold or os.environ.get(VARIABLE):
            return None
        try:
            return self.optimised()
        except CompileError:  # it would take too long
            self._stays_baseline = True
            return None

    @property
    def _threshold(self) -> float:
        """Returns the seconds in baseline code after which a kernel is optimised."""
        if is_long(self.program):
            return float("inf")
        return SECONDS + SECONDS_AN_INSTRUCTION * len(self.program.instructions)
