"""Advice about constant memory, local memory, atomics, and accesses of few bytes."""

from __future__ import annotations

from collections.abc import Iterator

from warploom.isa.instruction import Space
from warploom.program.accesses import bytes_of
from warploom.report.advice.case import Advice, Case

WORD = 4
"""Bytes of a register: what a thread can load at once for the price of one byte."""

REDUCTIONS = frozenset(["add", "min", "max", "and", "or", "xor", "inc", "dec"])
"""Atomics whose operands can be combined before."""


def scattered_constants(case: Case) -> Iterator[Advice]:
    """Yields advice for reads of constant memory at an index that differs between lanes."""
    for example in case.examples_in(Space.CONST):
        counts = case.counts_of(example)
        requests, passes = counts.constant_load_requests, counts.constant_load_transactions
        yield Advice(
            "diverging constant memory accesses",
            example.line,
            f"{passes:,} passes for {requests:,} requests: up to {example.cost} different words "
            "in one request",
            "The constant cache serves one word at a time to all lanes. Index it by a value that "
            "all lanes share, or keep the table in shared or global memory.",
            passes - requests,
        )


def contended_atomics(case: Case) -> Iterator[Advice]:
    """Yields advice for atomics that name one address: in a request, or in the whole grid."""
    for space in (Space.GLOBAL, Space.SHARED):
        for index, op, counts in case.accesses(space):
            words = case.program.instructions[index].operation.opcode.split(".")
            if op != "atomic" or not REDUCTIONS & set(words):
                continue
            requests, passes = counts.atomic_requests, counts.atomic_passes
            strides = case.strides.of_instruction(index)
            is_total = space is Space.GLOBAL and strides is not None and strides.is_uniform
            where = "one address of global memory" if is_total else "the same addresses in a warp"
            yield Advice(
                "atomics on one address",
                case.program.line(index),
                f"{passes:,} passes for {requests:,} requests to {where}; each pass waits for "
                "the previous one",
                _combined(space, is_total=is_total),
                _cost_of_total(case, passes) if is_total else passes - requests,
            )


def _cost_of_total(case: Case, passes: int) -> int:
    """Returns the slots that atomics of the whole grid to one address cost beyond one for each
    block. One slice of L2 executes them one after the other, and meanwhile a slot passes in every
    SM; the counted cost of the launch has no such slots, so the result is in proportion to both."""
    waited = max(0, passes - case.blocks) * case.spec.sms
    return case.total_cost * waited // max(1, case.total_cost + waited)


def _combined(space: Space, *, is_total: bool) -> str:
    """Returns the remedy for atomics: where to combine their operands."""
    if is_total:
        return (
            "First combine the values of a warp (__reduce_add_sync or shuffles), then those of "
            "the block in shared memory, and have one thread per block execute the atomic."
        )
    if space is Space.SHARED:
        return (
            "Give each warp separate counters in shared memory and add them up at the end, or "
            "combine lanes that use the same address (__match_any_sync)."
        )
    return (
        "First count in shared memory per block, and add the counts to global memory at the end; "
        "or combine lanes that use the same address (__match_any_sync)."
    )


def local_arrays(case: Case) -> Iterator[Advice]:
    """Yields advice for accesses to local memory, which lies in device memory: one for the kernel,
    at the line that costs most."""
    costs = [
        (counts[f"local_{op}_transactions"], index)
        for index, op, counts in case.accesses(Space.LOCAL)
    ]
    if not costs:
        return
    total, (_, index) = sum(cost for cost, _ in costs), max(costs)
    yield Advice(
        "array in local memory",
        case.program.line(index),
        f"{total:,} transactions of local memory, which resides in device memory; the arrays of "
        f"a thread occupy {case.program.local_bytes:,} bytes of it",
        "Keep the array in shared memory, or unroll its loops so that indexes are constants: an"
        " array with an index that is known only at run time cannot be in registers.",
        total,
    )


def narrow_accesses(case: Case) -> Iterator[Advice]:
    """Yields advice for accesses of less than a word by neighboring lanes."""
    for index, op, counts in case.accesses(Space.GLOBAL):
        size = bytes_of(case.program.instructions[index])
        strides = case.strides.of_instruction(index)
        if size >= WORD or op == "atomic" or strides is None or strides.threads.get("x") != size:
            continue
        count = WORD // size
        requests = counts[f"global_{op}_requests"]
        vector, part = ("char4, uchar4", "a quarter") if size == 1 else ("short2, half2", "half")
        yield Advice(
            "narrow access",
            case.program.line(index),
            f"{requests:,} requests of {size} byte{'s'[: size > 1]} per lane, but a 4-byte "
            f"register has space for {count} elements",
            f"Let each thread load or store {count} neighboring elements at once ({vector}), "
            f"with {part} of the requests.",
            requests - requests // count,
        )
