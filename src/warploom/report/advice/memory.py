"""Advice about constant memory, local memory and atomics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from warploom.isa.instruction import Space
from warploom.observe.counters import Counts
from warploom.observe.examples import Example
from warploom.report.advice.case import Advice, Case
from warploom.report.advice.loops import instructions_around
from warploom.report.advice.origins import (
    address_origins,
    array_of,
    declared_at,
    has_same_values,
    in_all_threads,
    is_decided_by_data,
    pointer_of,
    thread_array,
)
from warploom.report.source import split_line

SECTOR = 32

THREAD_INDICES = frozenset({"%tid", "%tid.x", "%tid.y", "%tid.z", "%laneid"})

NEUTRAL = {
    **dict.fromkeys(["add", "or", "xor", "inc"], "0"),
    "min": "the largest value",
    "max": "the smallest value",
    "and": "all bits set",
}
"""Operations of atomics whose operands can be combined before, each with the operand that changes
nothing."""


def scattered_constants(case: Case) -> Iterator[Advice]:
    """Yields advice for reads of constant memory at an index that differs between lanes."""
    tables: defaultdict[str, list[Example]] = defaultdict(list)
    for example in case.examples_in(Space.CONST):
        tables[array_of(case, example.instruction) or example.line].append(example)
    for examples in tables.values():
        line = max(examples, key=lambda one: one.cost).line
        counts = [case.counts_of(example) for example in examples]
        requests = sum(each.constant_load_requests for each in counts)
        passes = sum(each.constant_load_transactions for each in counts)
        worst = max(example.cost for example in examples)
        name = array_of(case, examples[0].instruction)
        yield Advice(
            "diverging constant memory accesses",
            line,
            f"{passes:,} passes for {requests:,} requests{f' to {name}' if name else ''}: up to "
            f"{worst} different words in one request",
            "The constant cache serves one word at a time to all lanes. Index the table by a "
            "value that all lanes share, or keep the table in shared memory or in global memory "
            "(const __restrict__).",
            passes - requests,
            saves={"constant_passes": passes - requests},
        )


def contended_atomics(case: Case) -> Iterator[Advice]:
    """Yields advice for atomics that name one address: in a request, or in the whole grid."""
    for space in (Space.GLOBAL, Space.SHARED):
        lines: defaultdict[tuple[str, bool], list[tuple[int, Counts]]] = defaultdict(list)
        for index, op, counts in case.accesses(space):
            words = case.program.instructions[index].operation.opcode.split(".")
            if op == "atomic" and NEUTRAL.keys() & set(words):
                is_total = space is Space.GLOBAL and _is_at_one_address(case, index)
                lines[case.program.line(index), is_total].append((index, counts))
        for (line, is_total), found in lines.items():
            yield _of_atomics(case, space, line, found, is_total=is_total)


def _of_atomics(
    case: Case, space: Space, line: str, found: list[tuple[int, Counts]], *, is_total: bool
) -> Advice:
    """Returns the advice for the atomics of a line."""
    requests = sum(counts.atomic_requests for _, counts in found)
    passes = sum(counts.atomic_passes for _, counts in found)
    first = found[0][0]
    name = array_of(case, first)
    where = f"one address in global memory{f' ({name})' if name else ''}"
    if not is_total:
        where = f"addresses that lanes of a warp share{f' ({name})' if name else ''}"
    saved: dict[str, float] = {"wavefronts": passes - requests}
    if space is Space.GLOBAL:
        left = case.blocks if is_total else case.blocks * _sectors(case, first)
        saved = {"atomic_passes": max(0, sum(_passes(case, *one) for one in found) - left)}
    return Advice(
        "atomics on one address",
        line,
        f"{passes:,} passes for {requests:,} requests to {where}; each pass waits for "
        "the previous one",
        _combined(case, space, *found[0], is_total=is_total),
        _cost_of_total(case, passes) if is_total else passes - requests,
        saves=saved,
    )


def passes_in_one_slice(case: Case) -> int:
    """Returns the passes of atomics on global memory that the slice of L2 with the most of them
    executes, if the addresses of each atomic are spread evenly over the sectors of its buffer."""
    return int(
        sum(
            _passes(case, index, counts)
            for index, op, counts in case.accesses(Space.GLOBAL)
            if op == "atomic"
        )
    )


def _passes(case: Case, index: int, counts: Counts) -> float:
    """Returns the passes of an atomic in the slice of L2 that executes most of them."""
    return counts.atomic_passes / min(case.l2_slices, _sectors(case, index))


def _sectors(case: Case, index: int) -> int:
    """Returns the sectors to which an atomic may be, as far as its buffer is known."""
    if _is_at_one_address(case, index):
        return 1
    pointer = pointer_of(case, index)
    size = None if pointer is None else pointer.size
    return case.l2_slices if size is None else max(1, -(-size // SECTOR))


def _is_at_one_address(case: Case, index: int) -> bool:
    """Returns whether all threads of the grid access one address."""
    strides = case.strides.of_instruction(index)
    return strides is not None and strides.is_uniform


def _cost_of_total(case: Case, passes: int) -> int:
    """Returns the slots that atomics of the whole grid to one address cost beyond one for each
    block. One slice of L2 executes them one after the other, and meanwhile a slot passes in every
    SM; the counted cost of the launch has no such slots, so the result is in proportion to both."""
    waited = max(0, passes - case.blocks) * case.spec.sms
    return case.total_cost * waited // max(1, case.total_cost + waited)


def _combined(case: Case, space: Space, index: int, counts: Counts, *, is_total: bool) -> str:
    """Returns the remedy for atomics: where to combine their operands."""
    if is_total:
        words = case.program.instructions[index].operation.opcode.split(".")
        neutral = next(NEUTRAL[word] for word in words if word in NEUTRAL)
        outside = (
            ""
            if in_all_threads(case.program, index)
            else f", outside the branch, with {neutral} for lanes that do not take it"
        )
        if counts.atomic_passes <= counts.atomic_requests:
            return (
                "Each warp already executes only one atomic. Also combine the values of a "
                "block's warps in shared memory, and have one thread per block execute the "
                "atomic."
            )
        by_warp = "shuffles" if words[-1].startswith("f") else "__reduce_add_sync or shuffles"
        if instructions_around(case.program, index):
            return (
                "Let each thread first combine its own values in a local variable during the loop. "
                f"After the loop, combine those of a warp ({by_warp}), then those of the block in "
                "shared memory, and have one thread per block execute the atomic."
            )
        return (
            f"First combine the values of a warp ({by_warp}"
            f"{outside}), then those of "
            "the block in shared memory, and have one thread per block execute the atomic."
        )
    if space is Space.SHARED:
        return (
            "First combine the lanes that use the same address: __match_any_sync returns their "
            "mask, and one lane adds for all of them. Or keep several copies of the counters, "
            "one for every few lanes, and add up the copies at the end."
        )
    by_warp = "; or combine lanes that use the same address (__match_any_sync)"
    return (
        "Have each block count in shared memory first, and then add its counts to global memory"
        f"{by_warp if in_all_threads(case.program, index) else ''}."
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
    line, size = case.program.line(index), case.program.local_bytes
    name = next(filter(None, (thread_array(case.program.line(i)) for _, i in costs)), "")
    declared = declared_at(name, line) if name else None
    at = "" if declared is None else f", declared at line {split_line(declared)[1]}"
    moved = case.work.local if case.work is not None else SECTOR * total
    yield Advice(
        "array in local memory",
        line,
        f"{total:,} local memory transactions: {name or 'an array'} ({size:,} bytes per "
        f"thread{at}) is kept in local memory, not in registers, because its index is known only "
        "at run time",
        _array_remedy(case, [i for _, i in costs], name or "the array"),
        total,
        saves={"local": moved},
    )


def _array_remedy(case: Case, indices: list[int], name: str) -> str:
    """Returns the remedy for an array in local memory: by whether all threads have the same values
    in it, and whether data decides on its index."""
    if all(has_same_values(case.program, index) for index in indices):
        return (
            f"All threads have the same values in {name}: keep one copy in shared memory "
            "(__shared__, one per block) or, if the lanes of a warp mostly use the same index, "
            "in constant memory (__constant__)."
        )
    needed = case.program.local_bytes * case.threads_per_block
    fits = needed <= case.spec.shared_bytes_per_block_optin
    size = f"{needed:,} bytes per block"
    if needed > case.spec.shared_bytes_per_block:
        size += " as dynamic shared memory" if fits else ", more than a block can have: use smaller"
    shared = f"Keep {name} in shared memory as [index][thread], which has no bank conflicts ({size}"
    shared += ")" if fits else " blocks)"
    if any(is_decided_by_data(case.program, index) for index in indices):
        return (
            f"{shared}; or use an algorithm whose indices do not depend on the data (for sorting, "
            "a sorting network) and unroll its loops: with constant indices, the array is kept in "
            "registers."
        )
    if any(address_origins(case.program, index).specials & THREAD_INDICES for index in indices):
        return f"{shared}. Unrolling does not help, because each thread computes its own index."
    return (
        f"Give the loops over {name} constant bounds and unroll them (#pragma unroll), so that all "
        "its indices are constants and the array can be kept in registers. Otherwise: "
        f"{shared[0].lower()}{shared[1:]}."
    )
