"""Replaces the cost rules' loops over lanes by vector instructions when Numba compiles helpers.

In Python the functions are loops, which define what they count; LLVM compiles these to scalar code.
For compilation, each is overloaded by a function that calls an intrinsic with hand-written IR
(`helpers.overlap`, `helpers.rising`, `helpers.deferred_counts`). The IR of an intrinsic is a
function of its own, shared by the helpers of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from llvmlite import ir

from warploom.cost.banks import count_ways, count_ways_branchless
from warploom.cost.deferred_atomics import sum_deferred_costs
from warploom.cost.overlap import count_coinciding, count_in_columns, count_segments
from warploom.cost.pattern_table import step_of
from warploom.helpers.deferred_counts import count_deferred
from warploom.helpers.overlap import (
    emit_count_coinciding,
    emit_count_in_columns,
    emit_count_segments,
)
from warploom.helpers.rising import emit_step
from warploom.helpers.symbols import SHARED
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I32, I64, PTR, Lanes, Value, vector
from warploom.simt.host_prefetch import register_prefetch
from warploom.simt.lane_counts import (
    ALL_LANES,
    compile_instead,
    count_distinct,
    count_distinct_branchless,
    count_rising_segments,
    is_rising,
)

WORDS = vector(I64)

FIRST_LANES = 8
"""The lanes that `_all_rise` compares before all 32."""

Emit = Callable[[Lanes, Sequence[Value]], list[Value]]


@lru_cache(1)
def register_vector_versions() -> None:
    """Registers with Numba, as replacements of Python functions in compiled helpers, vector
    versions of those that work over the lanes of an access (counts of `cost.overlap`, `is_rising`,
    `count_rising_segments`, `step_of`, `sum_deferred_costs`), and prefetching; later calls in a
    process do nothing. They are for arguments that are pointers and integers. Those of
    `count_distinct` and `count_ways` call the branchless loop where the vector code returns 0, as
    it does for segments that are too distant."""
    extending: Any = import_module("numba.extending")
    intrinsic = extending.intrinsic
    register_prefetch()

    @intrinsic
    def segments(typing: Any, addresses: Any, mask: Any, shift: Any) -> Any:
        """Defines the intrinsic of `emit_count_segments`, with two results."""
        return _define_intrinsic(emit_count_segments, 2, addresses, mask, shift)

    @intrinsic
    def in_columns(typing: Any, addresses: Any, mask: Any, shift: Any, columns: Any) -> Any:
        """Defines the intrinsic of `emit_count_in_columns`, with four results."""
        return _define_intrinsic(emit_count_in_columns, 4, addresses, mask, shift, columns)

    @intrinsic
    def coinciding(typing: Any, addresses: Any, mask: Any, shift: Any) -> Any:
        """Defines the intrinsic of `emit_count_coinciding`, with a tuple of one result."""
        return _define_intrinsic(emit_count_coinciding, 1, addresses, mask, shift)

    @intrinsic
    def rises(typing: Any, addresses: Any, mask: Any) -> Any:
        """Defines the intrinsic of `_all_rise`, with a tuple of one result."""
        return _define_intrinsic(_all_rise, 1, addresses, mask)

    @intrinsic
    def rising_segments(typing: Any, addresses: Any, shift: Any) -> Any:
        """Defines the intrinsic of `_count_steps` (`count_rising_segments`), with a tuple of one
        result."""
        return _define_intrinsic(_count_steps, 1, addresses, shift)

    @intrinsic
    def lane_step(typing: Any, places: Any, mask: Any) -> Any:
        """Defines the intrinsic of `emit_step` (`step_of`), with a tuple of one result."""
        return _define_intrinsic(emit_step, 1, places, mask)

    @intrinsic
    def deferred_costs(typing: Any, row: Any, count: Any) -> Any:
        """Defines the intrinsic of `count_deferred` (`sum_deferred_costs`), with seven results."""
        return _define_intrinsic(count_deferred, 7, row, count)

    def compiled_segments(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the two counts of `count_segments`, by the vector code."""
        return segments(addresses, mask, shift)

    def compiled_distinct(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the number of distinct segments (`count_distinct`): by the vector code or, if
        that returns 0 or no lane is active, by `count_distinct_branchless`."""
        count = segments(addresses, mask, shift)[0] if mask else 0
        return count if count != 0 else count_distinct_branchless(addresses, mask, shift)

    def compiled_in_columns(addresses: Any, mask: Any, shift: Any, columns: Any) -> Any:
        """Returns the four counts of `count_in_columns`, by the vector code."""
        return in_columns(addresses, mask, shift, columns)

    def compiled_ways(addresses: Any, mask: Any, shift: Any, banks: Any) -> Any:
        """Returns the most distinct segments of one bank (`count_ways`): by the vector code or, if
        that returns 0, by `count_ways_branchless`."""
        most = in_columns(addresses, mask, shift, banks)[3]
        return most if most != 0 else count_ways_branchless(addresses, mask, shift, banks)

    def compiled_coinciding(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the most active lanes in one segment (`count_coinciding`), by the vector code."""
        return coinciding(addresses, mask, shift)[0]

    def compiled_rise(addresses: Any, mask: Any) -> Any:
        """Returns whether all lanes are active with rising addresses (`is_rising`), as a bool, by
        the vector code."""
        return rises(addresses, mask)[0] != 0

    def compiled_rising_segments(addresses: Any, shift: Any) -> Any:
        """Returns the number of segments of rising addresses (`count_rising_segments`), by the
        vector code."""
        return rising_segments(addresses, shift)[0]

    def compiled_step(places: Any, mask: Any) -> Any:
        """Returns the stride of the active lanes' offsets (`step_of`), by the vector code."""
        return lane_step(places, mask)[0]

    def compiled_deferred_costs(row: Any, count: Any) -> Any:
        """Returns the seven results of `sum_deferred_costs`, by the vector code."""
        return deferred_costs(row, count)

    for function, compiled in (
        (sum_deferred_costs, compiled_deferred_costs),
        (count_segments, compiled_segments),
        (count_in_columns, compiled_in_columns),
        (count_distinct, compiled_distinct),
        (count_ways, compiled_ways),
        (count_coinciding, compiled_coinciding),
        (is_rising, compiled_rise),
        (count_rising_segments, compiled_rising_segments),
        (step_of, compiled_step),
    ):
        compile_instead(function, compiled)


def _define_intrinsic(emit: Emit, result_count: int, *arguments: Any) -> Any:
    """Returns the two values that a Numba intrinsic returns: its signature, with a tuple of
    `result_count` i64 as result, and the function that emits its code, a call of a function with
    the code of `emit`. `arguments` are the Numba types of the intrinsic's arguments."""
    types: Any = import_module("numba.core.types")
    answer = types.UniTuple(types.int64, result_count)

    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Value]) -> Value:
        """Emits the call of the shared function of `emit` (`_shared_function`); returns its results
        as Numba's tuple."""
        lanes = Lanes(builder.module, builder)
        plain = [_with_opaque_pointer(lanes, value) for value in values]
        results = builder.call(_shared_function(lanes, emit, result_count, plain), plain)
        return context.make_tuple(
            builder, answer, [builder.extract_value(results, n) for n in range(result_count)]
        )

    return answer(*arguments), generate


def _shared_function(
    lanes: Lanes, emit: Emit, result_count: int, arguments: Sequence[Value]
) -> ir.Function:
    """Returns the LLVM function with the code of `emit`, which returns `result_count` i64 for
    arguments of the types of `arguments`; defined at its first use in a module. It is not inlined,
    as it is long and many helpers call it."""
    name = SHARED + emit.__name__
    if name in lanes.module.globals:
        return lanes.module.globals[name]
    result = ir.ArrayType(I64, result_count)
    type = ir.FunctionType(result, [value.type for value in arguments])
    function = ir.Function(lanes.module, type, name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    inside = Lanes(lanes.module, FoldingBuilder(function.append_basic_block()))
    whole: Value = ir.Constant(result, ir.Undefined)
    for number, value in enumerate(emit(inside, function.args)):
        whole = inside.b.insert_value(whole, value, number)
    inside.b.ret(whole)
    return function


def _with_opaque_pointer(lanes: Lanes, value: Value) -> Value:
    """Returns a value of Numba's generated code as it is, but a typed pointer as an opaque one,
    which llvmlite needs to mix it with the engine's.
    """
    if not value.type.is_pointer:
        return value
    same = lanes.slot(value, 0)
    same.type = PTR
    return same


def _all_rise(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `simt.lane_counts.is_rising` of addresses in memory and a mask (i64): returns 1 (an
    i64) if all lanes are active and no address is below that of the lane before, else 0. The first
    8 lanes are compared before all 32: addresses that do not rise mostly fall there."""
    b, (at, mask) = lanes.b, arguments
    first = b.load(at, typ=ir.VectorType(I64, FIRST_LANES), align=8)
    falls = b.bitcast(
        b.icmp_unsigned("<", first, _from_lane_below(lanes, first)), ir.IntType(FIRST_LANES)
    )
    some_off = b.icmp_unsigned("!=", b.and_(mask, I64(ALL_LANES)), I64(ALL_LANES))
    fails = b.or_(some_off, b.icmp_unsigned("!=", falls, ir.IntType(FIRST_LANES)(0)))
    before, rest, done = b.block, *(b.append_basic_block(f"rise{end}") for end in ("", ".told"))
    b.cbranch(fails, done, rest)
    b.position_at_end(rest)
    addresses = b.load(at, typ=WORDS, align=8)
    falls = lanes.any(b.icmp_unsigned("<", addresses, _from_lane_below(lanes, addresses)))
    rises = b.zext(b.not_(falls), I64)
    b.branch(done)
    b.position_at_end(done)
    answer = b.phi(I64)
    answer.add_incoming(I64(0), before)
    answer.add_incoming(rises, rest)
    return [answer]


def _count_steps(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `simt.lane_counts.count_rising_segments` of 32 addresses in memory and a shift: the
    changes of the segment from lane to lane, plus one.
    """
    b, (at, shift) = lanes.b, arguments
    segments = b.lshr(b.load(at, typ=WORDS, align=8), lanes.splat(shift))
    steps = b.icmp_unsigned("!=", segments, _from_lane_below(lanes, segments))
    return [b.add(lanes.popcount(lanes.bits(steps)), I64(1))]


def _from_lane_below(lanes: Lanes, value: Value) -> Value:
    """Returns in each lane the value of the lane below (`value` may have any number of lanes); lane
    0 keeps its own."""
    order = [I32(max(lane - 1, 0)) for lane in range(value.type.count)]
    whole = ir.VectorType(I32, len(order))
    return lanes.b.shuffle_vector(value, value, ir.Constant(whole, order))
