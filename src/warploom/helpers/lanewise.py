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
from inspect import Parameter, Signature, signature
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
    versions of those that work over the lanes of an access, and prefetching; later calls in a
    process do nothing. They are for arguments that are pointers and integers."""
    register_prefetch()
    _register_counts()
    _register_sequences()


def _register_counts() -> None:
    """Registers vector versions of counts of segments. Those of `count_distinct` and `count_ways`
    call the branchless loop where the vector code returns 0, as it does for segments that are too
    distant."""
    segments = _vector_code(emit_count_segments, 2, count_segments)
    in_columns = _vector_code(emit_count_in_columns, 4, count_in_columns)
    coinciding = _vector_code(emit_count_coinciding, 1, count_coinciding)

    def compiled_segments(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the two counts of `count_segments`."""
        return segments(addresses, mask, shift)

    def compiled_distinct(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the number of distinct segments (`count_distinct`); 0 if no lane is active."""
        count = segments(addresses, mask, shift)[0] if mask else 0
        return count if count != 0 else count_distinct_branchless(addresses, mask, shift)

    def compiled_in_columns(addresses: Any, mask: Any, shift: Any, columns: Any) -> Any:
        """Returns the four counts of `count_in_columns`."""
        return in_columns(addresses, mask, shift, columns)

    def compiled_ways(addresses: Any, mask: Any, shift: Any, banks: Any) -> Any:
        """Returns the most distinct segments of one bank (`count_ways`)."""
        most = in_columns(addresses, mask, shift, banks)[3]
        return most if most != 0 else count_ways_branchless(addresses, mask, shift, banks)

    def compiled_coinciding(addresses: Any, mask: Any, shift: Any) -> Any:
        """Returns the most active lanes in one segment (`count_coinciding`)."""
        return coinciding(addresses, mask, shift)[0]

    compile_instead(count_segments, compiled_segments)
    compile_instead(count_in_columns, compiled_in_columns)
    compile_instead(count_distinct, compiled_distinct)
    compile_instead(count_ways, compiled_ways)
    compile_instead(count_coinciding, compiled_coinciding)


def _register_sequences() -> None:
    """Registers vector versions of what is computed from each lane's address and that of the lane
    before, and of the costs of deferred atomics."""
    rises = _vector_code(_all_rise, 1, is_rising)
    rising_segments = _vector_code(_count_steps, 1, count_rising_segments)
    lane_step = _vector_code(emit_step, 1, step_of)
    deferred_costs = _vector_code(count_deferred, 7, sum_deferred_costs)

    def compiled_rise(addresses: Any, mask: Any) -> Any:
        """Returns whether all lanes are active with rising addresses (`is_rising`), as a bool."""
        return rises(addresses, mask)[0] != 0

    def compiled_rising_segments(addresses: Any, shift: Any) -> Any:
        """Returns the number of segments of rising addresses (`count_rising_segments`)."""
        return rising_segments(addresses, shift)[0]

    def compiled_step(offsets: Any, mask: Any) -> Any:
        """Returns the stride of the active lanes' offsets (`step_of`)."""
        return lane_step(offsets, mask)[0]

    def compiled_deferred_costs(record: Any, count: Any) -> Any:
        """Returns the seven results of `sum_deferred_costs`."""
        return deferred_costs(record, count)

    compile_instead(is_rising, compiled_rise)
    compile_instead(count_rising_segments, compiled_rising_segments)
    compile_instead(step_of, compiled_step)
    compile_instead(sum_deferred_costs, compiled_deferred_costs)


def _vector_code(emit: Emit, result_count: int, function: Callable[..., object]) -> Any:
    """Returns a Numba intrinsic with the parameters of `function` that calls a function with the
    code of `emit`, and returns a tuple of its `result_count` i64."""
    types: Any = import_module("numba.core.types")
    extending: Any = import_module("numba.extending")
    answer = types.UniTuple(types.int64, result_count)

    def generate(context: Any, builder: Any, _signature: Any, values: Sequence[Value]) -> Value:
        """Emits the call of the shared function of `emit` (`_shared_function`); returns its results
        as Numba's tuple."""
        lanes = Lanes(builder.module, builder)
        plain = [_with_opaque_pointer(lanes, value) for value in values]
        results = builder.call(_shared_function(lanes, emit, result_count, plain), plain)
        return context.make_tuple(
            builder, answer, [builder.extract_value(results, n) for n in range(result_count)]
        )

    def vector_code(_context: Any, *arguments: Any) -> Any:
        """Returns, for Numba, the signature for arguments of some types, and the emitter."""
        return answer(*arguments), generate

    # Numba reads the number of parameters from the signature, and takes none of any number.
    context = Parameter("_context", Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature(function).parameters.values()
    vars(vector_code)["__signature__"] = Signature([context, *parameters])
    return extending.intrinsic(vector_code)


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
    before, rest, done = b.block, *(b.append_basic_block(n) for n in ("check_rest", "checked"))
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
    0 retains its own."""
    order = [I32(max(lane - 1, 0)) for lane in range(value.type.count)]
    whole = ir.VectorType(I32, len(order))
    return lanes.b.shuffle_vector(value, value, ir.Constant(whole, order))
