"""Chooses between baseline code, which compiles fast, and optimised code, which runs fast.

A kernel begins in baseline code (`lower.baseline`). Once its launches have spent as much time there
as optimising is expected to take, the kernel is optimised, so that compiling never takes much
longer than running. Both codes have the same results and counters. `machine.compiled.handover`
moves a running launch from one to the other.
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
"""The expected time to optimise a kernel, in seconds: a constant, and a term per instruction.
Measured on 12 kernels of benchmarks/families with 52 to 707 PTX instructions: 3 to 10 ms an
instruction."""


@dataclass
class Tiers:
    """The code of a program for launches of one variant, which the program caches. `seconds` is the
    time that launches have run in baseline code so far (`WorkerLaunch.run_slice` adds to it)."""

    program: Program
    rules: AccessRules
    variant: KernelVariant
    seconds: float = 0.0
    _baseline: CompiledKernel | None = None
    _optimised: CompiledKernel | None = None
    _stays_baseline: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def kernel(self) -> CompiledKernel:
        """Returns the code for a launch that begins now: optimised code if it is compiled, on disk
        (looked up only until there is baseline code) or due, if the variant has no baseline code,
        or if WARPLOOM_OPT_LEVEL sets a level; else baseline code, and while that variable is
        `baseline`, unless optimised code is compiled already."""
        if self._optimised is not None:
            return self._optimised
        level = os.environ.get(VARIABLE)
        if level == BASELINE and self._has_baseline:
            return self.baseline()
        if level or not self._has_baseline:
            return self.optimised()
        # The disk cache may hold optimised code of an earlier process; look once, before baseline
        # code is compiled.
        if self._baseline is None:
            self._optimised = find_kernel(self.program, self.rules, self.variant)
            if self._optimised is not None:
                return self._optimised
        optimised = self.optimised_when_due()
        return self.baseline() if optimised is None else optimised

    @property
    def _has_baseline(self) -> bool:
        """Returns true if launches of the variant may begin in baseline code: not if they are
        recorded, observed, sanitized or debugged."""
        variant = self.variant
        return not variant.is_watched and variant.sanitizes is None and variant.debugging is None

    def baseline(self) -> CompiledKernel:
        """Returns baseline code, compiled on first use under the lock of this object, with Ctrl-C
        deferred; the time counts as this thread's compile time."""
        with self._lock, interrupts_held(), compiling():
            if self._baseline is None:
                variant = self.variant.for_baseline()
                self._baseline = compile_kernel(self.program, self.rules, variant)
            return self._baseline

    def optimised(self) -> CompiledKernel:
        """Returns optimised code, compiled on first use under the lock of this object, with Ctrl-C
        deferred; the time counts as this thread's compile time."""
        # Interrupts are held only once the lock is acquired: waiting for it stays interruptible,
        # and an interrupt cannot end the compilation half-way. `compiling` adds the time to this
        # thread's.
        with self._lock, interrupts_held(), compiling():
            if self._optimised is None:
                self._optimised = compile_kernel(self.program, self.rules, self.variant)
            return self._optimised

    def optimised_when_due(self) -> CompiledKernel | None:
        """Returns optimised code, compiled now if necessary, once launches have spent `_threshold`
        seconds in baseline code; None before that, if WARPLOOM_OPT_LEVEL is set, or if optimising
        failed with CompileError, now or before."""
        if self._stays_baseline or self.seconds < self._threshold or os.environ.get(VARIABLE):
            return None
        try:
            return self.optimised()
        except CompileError:  # too long
            self._stays_baseline = True
            return None

    @property
    def _threshold(self) -> float:
        """Returns the seconds in baseline code after which the kernel is optimised, the expected
        time to optimise it; infinite for a program that is too long."""
        if is_long(self.program):
            return float("inf")
        return SECONDS + SECONDS_AN_INSTRUCTION * len(self.program.instructions)
