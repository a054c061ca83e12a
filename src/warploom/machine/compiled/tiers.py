"""Chooses between code that compiles fast and code that runs fast, by the time that a kernel's
launches have spent in its code.

A kernel begins in baseline code (`lower.baseline`), or, if it is observed, sanitized or debugged,
in code that LLVM hardly optimizes (level 0). It gets better code, one level after the other, when
its launches have spent so much time in the code before:

    baseline code  0.05 s  level 1  1 s  level 3
    level 0        0.3 s   level 1  1 s  level 3

With a free core a forked process compiles (`core.forked_task`) while launches go on; else they wait
for it, but not before they have spent about as much time as it needs. Seconds in baseline code are
stored in the disk cache (`baseline_seconds`): a program that ends before its code is compiled
begins with optimized code once all its runs together have spent what compiling costs. All code has
the same results and counters. Sanitized code of level 0, and of each level under a policy, is code
for any order (`KernelVariant.for_any_order`): one for all policies, which has 0.4 times the LLVM IR
of code for `converge` and runs half as fast. `machine.compiled.handover` moves a running launch
from baseline code, or code for any order, to other code; code of one variant has the same layout.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from warploom.compilation.jit import (
    Compilation,
    CompiledKernel,
    compile_kernel,
    find_kernel,
    is_cached,
    load_compiled,
    start_compiling,
)
from warploom.core.errors import CompileError
from warploom.core.forked import forget_in_child
from warploom.core.forked_task import ForkedTask
from warploom.core.interrupts import interrupts_held
from warploom.core.lazy import cached_property
from warploom.cost.device_rules import AccessRules
from warploom.ir.variant import KernelVariant
from warploom.llvm.opt_level import BASELINE, VARIABLE, Effort, chosen_effort, effort
from warploom.machine.compiled.baseline_seconds import BaselineSeconds
from warploom.machine.compiled.compile_time import compiling
from warploom.program.program import Program

SECONDS, SECONDS_AN_INSTRUCTION = 0.05, 0.0025
"""The expected time to compile a kernel at level 1, in seconds: a constant, and a term per
instruction. Measured on 12 kernels of benchmarks/families with 52 to 707 PTX instructions; 4 ms an
instruction is the median, but a launch gains more than it waits for."""

SECONDS_IN = {Effort.NONE: 0.05, Effort.LEAST: 0.3, Effort.LESS: 1.0}
"""The seconds in code of a level after which the next level is compiled beside launches; shorter
programs would only lose the processor time. Level 1 is 4 times as fast as baseline code in the
median, and twice as fast as level 0; level 3 is 1.03 times as fast as level 1, but 1.2 to 1.7 times
for one kernel in ten, and compiles 1.5 times as long."""


@dataclass(eq=False)
class Tiers:
    """The code of a program for launches of one variant, which the program caches. `seconds` is the
    time that launches have run in the current code (`add_seconds`), in baseline code with that of
    earlier processes."""

    program: Program
    rules: AccessRules
    variant: KernelVariant
    seconds: float = 0.0
    _codes: dict[Effort, CompiledKernel] = field(default_factory=dict[Effort, CompiledKernel])
    _current: CompiledKernel | None = None
    _task: ForkedTask | None = None
    _is_final: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _improving: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Registers the locks to be renewed in forked processes."""
        forget_in_child(self)

    def forget(self) -> None:
        """Renews the locks in a forked child process: a thread of the parent may have held them."""
        self._lock, self._improving = threading.Lock(), threading.Lock()

    def kernel(self) -> CompiledKernel:
        """Returns the code for a launch that begins now: the best that is compiled, on disk or due.
        It becomes the current code. Starts a compilation that is due (`improve_when_due`).
        WARPLOOM_OPT_LEVEL may set a level, or `baseline`, if the variant has baseline code; it is
        no longer read once there will be no better code."""
        if self._is_final and self._current is not None:
            return self._current
        level = os.environ.get(VARIABLE)
        if level == BASELINE and self._has_baseline:
            return self.baseline()
        if level:
            return self.optimised()
        if self._current is None:
            self._current = self._first_kernel()
        self._improve_when_due()
        return self._current

    def seconds_to_begin(self) -> float:
        """Returns the expected seconds until launches can begin: those to compile level 1, 0 if
        some code is compiled or on disk."""
        is_there = self._current is not None or self._was_on_disk
        return 0.0 if is_there else self._compile_seconds

    @cached_property
    def _was_on_disk(self) -> bool:
        """Returns whether code of some level was on disk at the first call: most launches read
        it."""
        return any(is_cached(self._compilation(level)) for level in self._levels)

    def _first_kernel(self) -> CompiledKernel:
        """Returns the code that launches begin with in this process: the best on disk, which
        becomes the current code. If there is none, level 1, compiled now, if earlier processes have
        spent `_expected_seconds` in baseline code; else the lowest level. Sets `seconds` to those
        of earlier processes, if that is baseline code; notes that there will be no better code, if
        there is only one level."""
        for better in reversed(self._levels[1:]):
            kernel = find_kernel(self._compilation(better))
            if kernel is not None:
                self._improve(kernel)
                return kernel
        lowest = self._levels[0]
        self._is_final = len(self._levels) == 1
        if lowest is Effort.NONE:
            self.seconds = self._stored_seconds.before
            if not self._is_final and self.seconds >= self._expected_seconds:
                self._compile_next()
        return self._current or self._code(lowest)

    @property
    def _has_baseline(self) -> bool:
        """Returns true if launches of the variant may begin in baseline code: not if they are
        observed, sanitized or debugged."""
        variant = self.variant
        is_plain = variant.sanitizes is None and variant.debugging is None
        return is_plain and not (variant.observes or variant.runs_side_by_side)

    @cached_property
    def _levels(self) -> tuple[Effort, ...]:
        """Returns the levels that launches go through: baseline code or level 0, then level 1 and
        level 3 as far as the size of the program allows."""
        most = effort(self.program)
        better = tuple(level for level in (Effort.LESS, Effort.FULL) if level.value <= most.value)
        if better and self.variant.runs_side_by_side:
            return better
        return (Effort.NONE if self._has_baseline else Effort.LEAST, *better)

    @cached_property
    def _stored_seconds(self) -> BaselineSeconds:
        """Returns the record on disk of the seconds in baseline code."""
        return BaselineSeconds(self._compilation(Effort.NONE).key)

    def _compilation(self, level: Effort) -> Compilation:
        """Returns the request for code of this program, variant and cost rules at a level; compiles
        nothing."""
        return Compilation(self.program, self.rules, self.variant, level)

    def baseline(self) -> CompiledKernel:
        """Returns baseline code, compiled on first use, with Ctrl-C deferred, without making it the
        current code; the time counts as this thread's compile time."""
        return self._code(Effort.NONE)

    def optimised(self) -> CompiledKernel:
        """Returns optimized code: the current code if its level is at least `chosen_effort` (that
        of the program's size, lowered by WARPLOOM_OPT_LEVEL). Otherwise compiles code of that
        level, and makes it the current code for good: no better code is compiled later."""
        wanted = chosen_effort(self.program)
        if self._current is None or self._current.effort.value < wanted.value:
            self._current = self._code(wanted)
            self._is_final = True
        return self._current

    def _code(self, level: Effort) -> CompiledKernel:
        """Returns the code of a level, compiled on first use under the lock of this object."""
        if (code := self._codes.get(level)) is not None:
            return code
        # Interrupts are held only once the lock is acquired: waiting for it stays interruptible,
        # and an interrupt cannot end the compilation half-way. `compiling` adds the time to this
        # thread's.
        with self._lock, interrupts_held(), compiling():
            if level not in self._codes:
                self._codes[level] = compile_kernel(self._compilation(level))
            return self._codes[level]

    def add_seconds(self, kernel: CompiledKernel, seconds: float) -> None:
        """Adds the time that a launch has run in a kernel's code to `seconds`, and stores the sum
        on disk for baseline code. Does nothing if launches no longer begin in that code, or if
        there will be no better code."""
        if kernel is self._current and not self._is_final:
            self.seconds += seconds
            if kernel.effort is Effort.NONE and self.seconds >= self._stored_seconds.due:
                self._stored_seconds.write(self.seconds)

    @property
    def is_compiling(self) -> bool:
        """Returns whether a forked process compiles better code, or has and it is not loaded."""
        return self._task is not None

    @property
    def reserves_core(self) -> bool:
        """Returns whether launches are to leave a core to the process that compiles: where it
        replaces baseline code or code of level 0, as a few launches on one core fewer cost less
        than those that better code comes later for."""
        return self.is_compiling and self._level in (Effort.NONE, Effort.LEAST)

    @property
    def current(self) -> CompiledKernel | None:
        """Returns the code that launches begin with now; None before the first, and where
        WARPLOOM_OPT_LEVEL is `baseline`."""
        return self._current

    def improve_when_due(self) -> None:
        """Makes the code of the next level the current code once it is compiled: by a forked
        process, which is started when launches have spent SECONDS_IN in the current code, or
        now if none can be and they have spent `_expected_seconds`. Does nothing if there is no
        better code, if WARPLOOM_OPT_LEVEL is set, or while another thread is here."""
        if not os.environ.get(VARIABLE):
            self._improve_when_due()

    def _improve_when_due(self) -> None:
        """Starts or loads the compilation, for a caller that has read WARPLOOM_OPT_LEVEL."""
        if self._is_final or not self._improving.acquire(blocking=False):
            return
        try:
            if self._task is not None:
                if self._task.is_done():
                    self._load(self._task)
            elif self.seconds >= SECONDS_IN[self._level]:
                self._task = start_compiling(self._compilation(self._next_level))
                if self._task is None and self.seconds >= self._expected_seconds:
                    self._compile_next()
        finally:
            self._improving.release()

    def _load(self, task: ForkedTask) -> None:
        """Loads the code that a forked process has compiled, and makes it the current code. There
        will be no better code if that fails: the kernel is too long, the process was killed, or a
        function that the code calls is not in the cache. Loads nothing if this process was forked
        after the task began (`is_forgotten`): the task is dropped, and another may be started."""
        entry, self._task = task.result(), None
        if task.is_forgotten:
            return
        kernel = None
        if entry is not None:
            with self._lock, interrupts_held(), compiling():
                kernel = load_compiled(self._compilation(self._next_level), entry)
        self._improve(kernel)

    def _compile_next(self) -> None:
        """Compiles the code of the next level now; there will be no better code if it lasts too
        long."""
        try:
            self._improve(self._code(self._next_level))
        except CompileError:
            self._improve(None)

    def _improve(self, kernel: CompiledKernel | None) -> None:
        """Makes `kernel` the code that launches begin with from now on, and counts `seconds` from 0
        again. There will be no better code if its level is the last, or if `kernel` is None: then
        the current code stays."""
        if kernel is not None:
            self._codes[kernel.effort] = self._current = kernel
            self.seconds = 0.0
        self._is_final = kernel is None or kernel.effort is self._levels[-1]

    @property
    def _level(self) -> Effort:
        """Returns the level of the current code, the lowest before there is any."""
        return self._levels[0] if self._current is None else self._current.effort

    @property
    def _next_level(self) -> Effort:
        """Returns the level after that of the current code, of which there is one."""
        return self._levels[self._levels.index(self._level) + 1]

    @property
    def _expected_seconds(self) -> float:
        """Returns the seconds in the current code after which launches wait for better code: the
        expected time to compile it, but at least SECONDS_IN."""
        return max(self._compile_seconds, SECONDS_IN[self._level])

    @property
    def _compile_seconds(self) -> float:
        """Returns the expected seconds to compile code of level 1."""
        return SECONDS + SECONDS_AN_INSTRUCTION * len(self.program.instructions)
