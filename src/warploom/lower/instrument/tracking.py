"""Emits code that records which global memory a worker reads and writes (`abi.access_sets`), in
kernels compiled for blocks that may conflict.

`st.global.f32 [%rd1], %f1` whose lanes access consecutive elements sets a range of bits; lanes at
other addresses set theirs one after the other:

    call @writes.range(set, first byte, end)
    call @writes.lanes.4(set, addresses of 32 lanes, mask)
    call @writes.ranges(...)     of all warps of a block, in a warp loop

Each function tests first whether the worker has touched the page before; if not, `touch` notes it,
and saves the page before its first write. Not handled: accesses of whole warps, copies, and other
spaces than global memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.abi.access_sets import PAGE_BYTES, PAGE_SHIFT, READ, SAVED, SAVING, STORED, WRITTEN
from warploom.abi.access_sets import AccessSet as Fields
from warploom.abi.environment import Slot
from warploom.isa.instruction import Space
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I1, I8, I32, I64, PTR, Lanes, Value, vector
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.access_event import AccessEvent, LaneRuns
from warploom.program.tracking import Tracking

WORD_SHIFT = 6
"""A word of a bitmap has bits for 64 units."""

NAMES = {READ: "reads", WRITTEN: "writes", STORED: "stores"}
BITMAPS = {READ: Fields.reads, WRITTEN: Fields.writes, STORED: Fields.stores}


class TrackingCode:
    """Emits the calls that record one warp's accesses in its worker's access set."""

    def __init__(self, frame: Frame, tracking: Tracking) -> None:
        """Stores which accesses to record; emits nothing."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._tracking = tracking
        self._functions = TrackingFunctions(frame.module, tracking.unit)

    def tracks(self, index: int) -> bool:
        """Returns whether the accesses of an instruction are recorded."""
        return index in self._tracking

    def access(self, event: AccessEvent) -> None:
        """Emits the record of an access to global memory: of a range of bytes if its lanes access
        every byte of one, else of each lane. Emits nothing for other accesses."""
        if event.access_type.space is not Space.GLOBAL or not self.tracks(event.index):
            return
        b, kind, size, extent = (
            self.b,
            self._kind(event.index),
            event.access_type.size,
            event.extent,
        )
        access_set = self.frame.pointer(Slot.ACCESS_SET_AT)
        bits = self.lanes.bits(event.mask)

        def record_lanes() -> None:
            """Emits the call that records the event lane by lane."""
            function = self._functions.lanes(kind, size)
            b.call(function, [access_set, event.addresses, bits])

        if extent is None:
            record_lanes()
            return
        # Without active lanes `is_dense` is false, and the bounds are of no byte that is accessed:
        # the loop over lanes then records nothing.
        # All lanes at one address access every byte of the range as well.
        is_one = b.icmp_unsigned("==", b.sub(extent.high, extent.low), I64(size))
        is_one = b.and_(is_one, b.icmp_unsigned("!=", bits, I32(0)))
        is_range = b.or_(extent.is_dense, is_one)
        with b.if_else(is_range, likely=True) as (on_range, on_lanes):
            with on_range:
                b.call(self._functions.range(kind), [access_set, extent.low, extent.high])
            with on_lanes:
                record_lanes()

    def warps(self, index: int, size: int, runs: LaneRuns, step: Value, warps: Value) -> None:
        """Emits the record of an access to global memory by all lanes of the first `warps` warps of
        a block, `size` bytes a lane: `runs` are the addresses of the first warp, from which those
        of each next one differ by `step` bytes. Emits nothing for instructions not recorded."""
        if not self.tracks(index):
            return
        layout, access_set = runs.layout, self.frame.pointer(Slot.ACCESS_SET_AT)
        is_dense = layout.stride in (0, size, -size)
        elements, stride = (1, 0) if is_dense else (layout.length, layout.stride)
        length = size + abs(layout.extent) if is_dense else size
        for run in range(layout.width):
            run_address = self.lanes.lane(runs.firsts, run)
            if is_dense and layout.stride < 0:
                run_address = self.b.add(run_address, I64(layout.extent))
            counts = I64(elements), I64(stride), warps, step
            function = self._functions.ranges(self._kind(index))
            self.b.call(function, [access_set, run_address, I64(length), *counts])

    def _kind(self, index: int) -> int:
        """Returns the bit of `touched` that the accesses of an instruction set."""
        if index in self._tracking.reads:
            return READ
        return WRITTEN if index in self._tracking.writes else STORED


class TrackingFunctions:
    """Makes the functions of a module that record accesses, each at its first use. `kind` is READ,
    WRITTEN or STORED (`abi.access_sets`): the bit of `touched` that an access sets, which chooses
    the bitmap that it marks. The functions are not inlined: code is small, and calls cost less than
    what they do."""

    def __init__(self, module: ir.Module, unit: int) -> None:
        """`unit`: the bytes for which one bit stands."""
        self._module, self._unit_shift = module, unit.bit_length() - 1

    def range(self, kind: int) -> ir.Function:
        """Returns the function `(access set, first byte, end)` that records a range of bytes, which
        is not empty."""
        emit = functools.partial(self._emit_range, kind)
        return self._function(f"{NAMES[kind]}.range", [PTR, I64, I64], emit)

    def ranges(self, kind: int) -> ir.Function:
        """Returns the function `(access set, first byte, length, elements, stride, warps, step)`
        that records, for each of `warps` warps, the ranges of `elements` elements of `length` bytes
        each, at distances of `stride` bytes. The ranges of a warp are `step` bytes after those of
        the warp before. Ranges of one element whose step is their length adjoin, and are recorded
        as one."""
        emit = functools.partial(self._emit_ranges, kind)
        return self._function(f"{NAMES[kind]}.ranges", [PTR, *[I64] * 6], emit)

    def lanes(self, kind: int, size: int) -> ir.Function:
        """Returns the function `(access set, addresses, mask)` that records `size` bytes of each
        lane in a mask, at addresses that are multiples of `size`."""
        emit = functools.partial(self._emit_lanes, kind, size)
        return self._function(f"{NAMES[kind]}.lanes.{size}", [PTR, vector(I64), I32], emit)

    def _touch(self, kind: int) -> ir.Function:
        """Returns the function `(access set, page)` that notes that the worker accesses a page for
        the first time in this `kind`; before the first write by any worker it also saves the
        page."""
        emit = functools.partial(self._emit_touch, kind)
        return self._function(f"{NAMES[kind]}.touch", [PTR, I64], emit)

    def _function(
        self, name: str, arguments: Sequence[ir.Type], emit: Callable[[Lanes], None]
    ) -> ir.Function:
        """Returns a function of the module that returns nothing; `emit` emits its body at the first
        use of its name."""
        if name in self._module.globals:
            return self._module.globals[name]
        function = ir.Function(self._module, ir.FunctionType(ir.VoidType(), arguments), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        emit(Lanes(self._module, FoldingBuilder(function.append_basic_block("entry"))))
        return function

    def _emit_range(self, kind: int, lanes: Lanes) -> None:
        """Emits the body of `range`: touches the pages, and sets the units' bits, in whole words
        but for the first and the last one."""
        b = lanes.b
        access_set, low, high = b.function.args
        base = _field(lanes, access_set, Fields.base)
        first_byte, last_byte = b.sub(low, base), b.sub(high, b.add(base, I64(1)))
        first_page, last_page = (b.lshr(at, I64(PAGE_SHIFT)) for at in (first_byte, last_byte))
        _for_each(lanes, first_page, last_page, functools.partial(self._emit_test, kind, lanes))
        first_unit, last_unit = (
            b.lshr(byte, I64(self._unit_shift)) for byte in (first_byte, last_byte)
        )
        bitmap = _pointer(lanes, access_set, BITMAPS[kind])
        first_word, last_word = (b.lshr(unit, I64(WORD_SHIFT)) for unit in (first_unit, last_unit))
        from_first = b.shl(I64(-1), b.and_(first_unit, I64(63)))
        to_last = b.lshr(I64(-1), b.sub(I64(63), b.and_(last_unit, I64(63))))
        is_one_word = b.icmp_unsigned("==", first_word, last_word)
        with b.if_else(is_one_word) as (on_one, on_several):
            with on_one:
                _set_bits(lanes, bitmap, first_word, b.and_(from_first, to_last))
            with on_several:
                _set_bits(lanes, bitmap, first_word, from_first)
                _set_bits(lanes, bitmap, last_word, to_last)
                after_first, before_last = b.add(first_word, I64(1)), b.sub(last_word, I64(1))
                with b.if_then(b.icmp_unsigned("<=", after_first, before_last)):
                    _for_each(
                        lanes,
                        after_first,
                        before_last,
                        lambda word: b.store(I64(-1), lanes.slot(bitmap, word)),
                    )
        b.ret_void()

    def _emit_ranges(self, kind: int, lanes: Lanes) -> None:
        """Emits the body of `ranges`: one call of `range` where all adjoin, else one for each."""
        b, record = lanes.b, self.range(kind)
        access_set, address, length, elements, stride, warps, step = b.function.args
        with b.if_then(b.icmp_unsigned("==", warps, I64(0))):
            b.ret_void()
        adjoin = b.icmp_unsigned("==", step, length)
        with b.if_then(b.and_(adjoin, b.icmp_unsigned("==", elements, I64(1)))):
            b.call(record, [access_set, address, b.add(address, b.mul(warps, step))])
            b.ret_void()

        def record_warp(warp: Value) -> None:
            """Emits the calls for the elements of a warp."""
            start = b.add(address, b.mul(warp, step))

            def record_element(element: Value) -> None:
                """Emits the call for an element."""
                low = b.add(start, b.mul(element, stride))
                b.call(record, [access_set, low, b.add(low, length)])

            _for_each(lanes, I64(0), b.sub(elements, I64(1)), record_element)

        _for_each(lanes, I64(0), b.sub(warps, I64(1)), record_warp)
        b.ret_void()

    def _emit_lanes(self, kind: int, size: int, lanes: Lanes) -> None:
        """Emits the body of `lanes`: a loop over the lanes of the mask."""
        b = lanes.b
        access_set, addresses, mask = b.function.args
        at = lanes.alloca(vector(I64))
        b.store(addresses, at)
        base = _field(lanes, access_set, Fields.base)
        bitmap = _pointer(lanes, access_set, BITMAPS[kind])
        entry = b.block
        head, body, end = (b.append_basic_block(name) for name in ("head", "lane", "end"))
        b.branch(head)
        b.position_at_end(head)
        left = b.phi(I32)
        left.add_incoming(mask, entry)
        b.cbranch(b.icmp_unsigned("!=", left, I32(0)), body, end)
        b.position_at_end(body)
        lane = b.zext(b.cttz(left, I1(1)), I64)
        byte = b.sub(b.load(lanes.slot(at, lane), typ=I64), base)
        self._emit_test(kind, lanes, b.lshr(byte, I64(PAGE_SHIFT)))
        # Accesses are aligned, so their units are bits of one word.
        unit = b.lshr(byte, I64(self._unit_shift))
        unit_bits = (1 << (size >> self._unit_shift)) - 1
        bits = b.shl(I64(unit_bits), b.and_(unit, I64(63)))
        _set_bits(lanes, bitmap, b.lshr(unit, I64(WORD_SHIFT)), bits)
        left.add_incoming(b.and_(left, b.sub(left, I32(1))), b.block)
        b.branch(head)
        b.position_at_end(end)
        b.ret_void()

    def _emit_test(self, kind: int, lanes: Lanes, page: Value) -> None:
        """Emits the call of `touch` unless the worker has touched the page in this way; returns
        from the function that is emitted if the page is none that is recorded."""
        b, access_set = lanes.b, lanes.b.function.args[0]
        pages = _field(lanes, access_set, Fields.pages)
        # Addresses below `base` are outside as well: their difference, without sign, is large. What
        # is not recorded after the return does not matter, as a worker that strayed counts as a
        # conflict (`machine.compiled.access_sets`).
        outside = b.icmp_unsigned(">=", page, pages)
        with b.if_then(outside, likely=False):
            b.store(I64(1), lanes.slot(access_set, Fields.strayed))
            b.ret_void()
        touched = lanes.slot(_pointer(lanes, access_set, Fields.touched), page, I8)
        has_kind = b.and_(b.load(touched, typ=I8), I8(kind))
        with b.if_then(b.icmp_unsigned("==", has_kind, I8(0)), likely=False):
            b.call(self._touch(kind), [access_set, page])

    def _emit_touch(self, kind: int, lanes: Lanes) -> None:
        """Emits the body of `touch`: sets the bit `kind` of the page in the worker's `touched`. For
        a write, the first worker to write to the page also copies it to `saved`; others wait for
        that before they write."""
        b = lanes.b
        access_set, page = b.function.args
        touched = lanes.slot(_pointer(lanes, access_set, Fields.touched), page, I8)
        b.store(b.or_(b.load(touched, typ=I8), I8(kind)), touched)
        if kind == READ:
            b.ret_void()
            return
        # Only `states` and `saved` are shared by the workers. The event is emitted before the
        # access, so that the page still has the contents that it had before any worker wrote to it.
        # The maximum claims a page that nobody has claimed, and leaves SAVED, which is greater,
        # alone.
        state = lanes.slot(_pointer(lanes, access_set, Fields.states), page, I8)
        before = b.atomic_rmw("umax", state, I8(SAVING), "acq_rel")
        with b.if_then(b.icmp_unsigned("==", before, I8(0))):
            offset = b.shl(page, I64(PAGE_SHIFT))
            saved = lanes.slot(_pointer(lanes, access_set, Fields.saved), offset, I8)
            contents = lanes.slot(_pointer(lanes, access_set, Fields.base), offset, I8)
            copied = [saved, contents, I64(PAGE_BYTES), I1(0)]
            lanes.intrinsic("llvm.memcpy.p0.p0.i64", ir.VoidType(), copied)
            b.atomic_rmw("xchg", state, I8(SAVED), "release")
            b.ret_void()
        wait, done = b.append_basic_block("wait"), b.append_basic_block("done")
        b.branch(wait)
        b.position_at_end(wait)
        now = b.load_atomic(state, "acquire", 1, typ=I8)
        b.cbranch(b.icmp_unsigned("==", now, I8(SAVED)), done, wait)
        b.position_at_end(done)
        b.ret_void()


def _for_each(lanes: Lanes, start: Value, last: Value, body: Callable[[Value], object]) -> None:
    """Emits a loop over the numbers from `start` to `last` (i64), which is not less: both
    included."""
    b = lanes.b
    before, head, end = b.block, b.append_basic_block("each"), b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)
    number = b.phi(I64)
    number.add_incoming(start, before)
    body(number)
    number.add_incoming(b.add(number, I64(1)), b.block)
    b.cbranch(b.icmp_unsigned("==", number, last), end, head)
    b.position_at_end(end)


def _field(lanes: Lanes, access_set: Value, word: int) -> Value:
    """Loads a word of an access set."""
    return lanes.b.load(lanes.slot(access_set, word), typ=I64)


def _pointer(lanes: Lanes, access_set: Value, word: int) -> Value:
    """Loads a word of an access set that is an address."""
    return lanes.b.inttoptr(_field(lanes, access_set, word), PTR)


def _set_bits(lanes: Lanes, bitmap: Value, word: Value, bits: Value) -> None:
    """Emits code that sets bits of a bitmap's word."""
    at = lanes.slot(bitmap, word)
    lanes.b.store(lanes.b.or_(lanes.b.load(at, typ=I64), bits), at)
