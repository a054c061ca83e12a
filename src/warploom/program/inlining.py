"""Chooses the functions that are not inlined: as few as limit the size of a kernel.

Inlining copies a function to each of its calls, so that a chain of functions which call each other
twice grows as 2^n. All calls are inlined while the kernel stays below MAX_INLINED instructions and
MAX_DEPTH nested calls; else the larger functions with several calls are retained, with a threshold
of size that falls until the kernel fits.

    f0: 20 instructions; f1: call f0; call f0; f2: call f1; call f1; ... f20; kernel: call f20

Inlined, the kernel would have 2^20 copies of f0. With threshold 64, f1 has 42 instructions and is
inlined, f2 has 86 and is retained; f3 has 2, and f8, with 126, is the next that is retained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warploom.core.errors import CompileError
from warploom.core.mangled import shown_name
from warploom.program.callgraph import CallGraph
from warploom.ptx.module import Function

MAX_INLINED = 5_000
"""Instructions of a kernel up to which all calls are inlined."""

MAX_DEPTH = 64
"""Nested calls up to which calls are inlined."""

THRESHOLDS = (64, 16)
"""Sizes above which functions with several calls are retained, tried in turn."""

MAX_INSTRUCTIONS = 100_000
"""Instructions of a kernel and its callees above which it is not compiled."""


@dataclass(frozen=True)
class _Size:
    """The size of a function with its inlined callees: instructions, and depth of nested calls."""

    instructions: int
    depth: int


def retained_functions(graph: CallGraph, kernel: Function) -> frozenset[str]:
    """Returns the names of functions that could be inlined but are not, because the kernel would
    exceed MAX_INLINED instructions or MAX_DEPTH nested calls. First only functions that are too
    deep are retained; while the kernel is too large, also those of several calls and more
    instructions than a threshold, which falls.

    Raises CompileError if the kernel exceeds MAX_INSTRUCTIONS even at the lowest threshold."""
    order = _callees_first(graph, kernel)
    called = Counter(name for function in order for name in graph.direct_callees(function.name))
    retained, total = _retain(graph, order, called, None)
    for threshold in THRESHOLDS:
        if total <= MAX_INLINED:
            return retained
        retained, total = _retain(graph, order, called, threshold)
    if total > MAX_INSTRUCTIONS:
        raise _too_large(kernel, order, called, total)
    return retained


def _callees_first(graph: CallGraph, kernel: Function) -> list[Function]:
    """Returns the kernel and all functions that it can call, each after its callees, so that the
    kernel is last."""
    order: list[Function] = []
    entered: set[str] = set()
    pending = [(kernel, False)]
    while pending:
        function, done = pending.pop()
        if done:
            order.append(function)
        elif function.name not in entered:
            entered.add(function.name)
            pending.append((function, True))
            pending += [(graph.function(name), False) for name in graph.callees(function.name)]
    return order


def _retain(
    graph: CallGraph, order: Sequence[Function], called: Mapping[str, int], threshold: int | None
) -> tuple[frozenset[str], int]:
    """Returns the functions that are retained at a threshold, and the instructions of these and of
    the kernel, with what is inlined into them. Recursive functions, and those that are only called
    through registers, count only if they are among the retained ones. A function is retained if it
    has several calls and, with its inlined callees, more instructions than `threshold` (None: no
    limit), or if its calls nest MAX_DEPTH deep; the kernel never is. `order` lists callees first
    and the kernel last, `called` counts the calls of each function."""
    sizes: dict[str, _Size] = {}
    retained: set[str] = set()
    for function in order:
        name = function.name
        instructions, depth = len(function.instructions), 0
        for callee in graph.direct_callees(name):
            if callee not in retained and callee in sizes and not graph.is_recursive(callee):
                instructions += sizes[callee].instructions
                depth = max(depth, 1 + sizes[callee].depth)
        # Callees come first, so that a function which is retained is no longer part of its callers'
        # sizes: the threshold bounds what is left of them.
        sizes[name] = _Size(instructions, depth)
        large = threshold is not None and called[name] > 1 and instructions > threshold
        if name != order[-1].name and (large or depth >= MAX_DEPTH):
            retained.add(name)
    total = sum(sizes[name].instructions for name in (*retained, order[-1].name))
    return frozenset(retained), total


def _too_large(
    kernel: Function, order: Sequence[Function], called: Mapping[str, int], total: int
) -> CompileError:
    """Returns the error for a kernel of `total` instructions, which names the function that
    contributes most."""
    largest = max(
        order, key=lambda function: len(function.instructions) * max(1, called[function.name])
    )
    return CompileError(
        f"kernel {shown_name(kernel.name)} is too large to compile: {total:,} instructions, "
        f"including those of the functions that it calls; the limit is {MAX_INSTRUCTIONS:,}. Most "
        f"of these instructions are in {shown_name(largest.name)}, which is called in "
        f"{called[largest.name] or 1} places. Split the kernel, unroll less, or call that function "
        "in fewer places."
    )
