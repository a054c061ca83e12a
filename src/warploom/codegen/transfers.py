"""Emits the moves of accesses whose addresses have a shape: what lanes load, what they store.

Lanes that read one place share a scalar load; consecutive places are a vector, under a mask where
not all lanes are on; any other stride is gathered or scattered. That the places are inside of an
allocation has been found before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.analysis.strides import Shape as LaneShape
from warploom.codegen.access import Shape
from warploom.codegen.lanes import (
    I1,
    I8,
    I32,
    I64,
    LANES,
    MASK,
    PTR,
    Lanes,
    Value,
    selection,
    splat_constant,
    undefined,
    vector,
)
from warploom.codegen.places import LOCAL_ROW_BITS
from warploom.ptx.ir import Space

WORD_BYTES = 4
AHEAD = 1024
"""How far ahead loads ask for what comes: some warps, and inside of most rows of matrices."""

HOST_LINE = 64
"""Bytes of a line of the host's caches."""


class Transfers:
    """Emits such moves. An access is given by its type, the shape of its addresses, where each run
    begins (`firsts`), and the lanes that are `on`, None for all. `pointer` gives where an address
    leads on the host; of local memory, that of lane 0."""

    def __init__(self, lanes: Lanes, pointer: Callable[[Shape, Value], Value]) -> None:
        self.lanes, self.b, self.pointer = lanes, lanes.b, pointer

    # ---- loads ----------------------------------------------------------------------------------

    def load(
        self, shape: Shape, lanes: LaneShape, firsts: Sequence[Value], on: Value | None
    ) -> list[Value]:
        """Returns the elements of each lane, part by part: where the lanes of each run read one
        place in as many lanes as there are runs, else in 32."""
        if shape.space is Space.LOCAL:
            return self._load_words(shape, firsts[0], on)
        if lanes.stride == 0:
            return self._load_agreed(shape, firsts)
        if lanes.stride == shape.size:
            return self._load_runs(shape, firsts, on)
        on = ir.Constant(MASK, [I1(1)] * LANES) if on is None else on
        pointers = self._pointers(shape, lanes, firsts)
        return [
            self.gather(shape, self._part(pointers, shape, part), on) for part in range(shape.parts)
        ]

    def _load_agreed(self, shape: Shape, firsts: Sequence[Value]) -> list[Value]:
        """Load one place for each run, whether some of its lanes are on or not."""
        b, pointers = self.b, [self.pointer(shape, first) for first in firsts]
        found: list[Value] = []
        for part in range(shape.parts):
            value: Value = undefined(ir.VectorType(shape.element, len(pointers)))
            for run, pointer in enumerate(pointers):
                at = b.gep(pointer, [I64(part)], source_etype=shape.element) if part else pointer
                one = b.load(at, typ=shape.element, align=shape.type.bytes)
                value = b.insert_element(value, one, I32(run))
            found.append(value)
        return found

    def _load_runs(self, shape: Shape, firsts: Sequence[Value], on: Value | None) -> list[Value]:
        """Consecutive elements from the begin of each run on."""
        b, count = self.b, LANES // len(firsts) * shape.parts
        runs: list[Value] = []
        for run, first in enumerate(firsts):
            pointer, type = self.pointer(shape, first), ir.VectorType(shape.element, count)
            if on is None:
                runs.append(b.load(pointer, typ=type, align=shape.type.bytes))
            else:
                here = self._mask_of(on, run, len(firsts), shape.parts)
                runs.append(self.lanes.masked_load(pointer, here, shape.element))
        whole = self._joined(runs)
        if shape.parts == 1:
            return [whole]
        return [
            b.shuffle_vector(whole, whole, selection(range(part, LANES * shape.parts, shape.parts)))
            for part in range(shape.parts)
        ]

    def _joined(self, runs: list[Value]) -> Value:
        """Vectors one behind the other."""
        while len(runs) > 1:
            order = selection(range(2 * runs[0].type.count))
            pairs = zip(runs[::2], runs[1::2], strict=True)
            runs = [self.b.shuffle_vector(one, two, order) for one, two in pairs]
        return runs[0]

    def _mask_of(self, on: Value, run: int, runs: int, parts: int) -> Value:
        """Return the mask of a run, each lane `parts` times."""
        length = LANES // runs
        if runs == 1 and parts == 1:
            return on
        lanes = [run * length + lane for lane in range(length) for _ in range(parts)]
        return self.b.shuffle_vector(on, on, selection(lanes))

    def load_following(
        self, shape: Shape, firsts: Sequence[Value], step: Value, pointers: Value, on: Value
    ) -> list[Value]:
        """Returns elements of lanes that follow, in each run, by a step which is known as code
        runs: `pointers` are where they reach. Elements of less than words are known to be
        consecutive."""
        together = LaneShape(len(firsts), shape.size)
        if shape.type.bytes < WORD_BYTES:
            return self.load(shape, together, firsts, on)
        b = self.b
        ways = [b.append_basic_block(name) for name in ("vector", "gather", "moved")]
        b.cbranch(b.icmp_unsigned("==", step, I64(shape.size)), *ways[:2])
        found: list[tuple[list[Value], ir.Block]] = []
        for way, block in enumerate(ways[:2]):
            b.position_at_end(block)
            if way == 0:
                values = self.load(shape, together, firsts, on)
            else:
                values = self.load_apart(shape, pointers, on)
            found.append((values, b.block))
            b.branch(ways[2])
        b.position_at_end(ways[2])
        results: list[Value] = []
        for part in range(shape.parts):
            results.append(b.phi(vector(shape.element)))
            for values, block in found:
                results[-1].add_incoming(values[part], block)
        return results

    def load_apart(self, shape: Shape, pointers: Value, on: Value) -> list[Value]:
        """Gather elements, part by part, wherever lanes reach."""
        parts = (self._part(pointers, shape, part) for part in range(shape.parts))
        return [self.gather(shape, pointer, on) for pointer in parts]

    def _part(self, pointers: Value, shape: Shape, part: int) -> Value:
        """Returns where one part of each lane's elements begins."""
        ahead = splat_constant(part * shape.type.bytes, I64)
        return self.b.gep(pointers, [ahead], source_etype=I8) if part else pointers

    def gather(self, shape: Shape, pointers: Value, on: Value) -> Value:
        """Gather one element a lane. There is no instruction that gathers less than words: a
        narrower element is cut out of the aligned word that it lies in."""
        b, element = self.b, shape.element
        if shape.type.bytes >= WORD_BYTES:
            return self.lanes.gather(pointers, on, element)
        places = b.ptrtoint(pointers, vector(I64))
        inside = splat_constant(WORD_BYTES - 1, I64)
        whole = b.inttoptr(b.and_(places, b.not_(inside)), vector(PTR))
        words = self.lanes.gather(whole, on, I32)
        bits = b.shl(b.trunc(b.and_(places, inside), vector(I32)), splat_constant(3, I32))
        return b.trunc(b.lshr(words, bits), vector(element))

    # ---- stores ---------------------------------------------------------------------------------

    def store(
        self,
        shape: Shape,
        lanes: LaneShape,
        firsts: Sequence[Value],
        values: Sequence[Value],
        on: Value | None,
    ) -> None:
        """Store elements of 32 lanes, given part by part; of lanes on one address the highest
        lasts."""
        if shape.space is Space.LOCAL:
            self._store_words(shape, firsts[0], values, on)
        elif lanes.stride == 0:
            self._store_agreed(shape, firsts[0], values, on)
        elif lanes.stride == shape.size:
            self._store_runs(shape, firsts, values, on)
        else:
            on = ir.Constant(MASK, [I1(1)] * LANES) if on is None else on
            self._scatter(shape, self._pointers(shape, lanes, firsts), values, on)

    def store_following(
        self,
        shape: Shape,
        firsts: Sequence[Value],
        step: Value,
        pointers: Value,
        values: Sequence[Value],
        on: Value,
    ) -> None:
        """Store elements of lanes that follow by a step, as `load_following` loads them."""
        together = LaneShape(len(firsts), shape.size)
        if shape.type.bytes < WORD_BYTES:
            self.store(shape, together, firsts, values, on)
            return
        consecutive = self.b.icmp_unsigned("==", step, I64(shape.size))
        with self.b.if_else(consecutive) as (then, otherwise):
            with then:
                self.store(shape, together, firsts, values, on)
            with otherwise:
                self._scatter(shape, pointers, values, on)

    def _scatter(self, shape: Shape, pointers: Value, values: Sequence[Value], on: Value) -> None:
        for part, value in enumerate(values):
            self.lanes.scatter(value, self._part(pointers, shape, part), on)

    def _store_agreed(
        self, shape: Shape, first: Value, values: Sequence[Value], on: Value | None
    ) -> None:
        """Store from all lanes to one place; some lane is on."""
        highest: Value = I32(LANES - 1)
        if on is not None:
            behind = self.lanes.intrinsic("llvm.ctlz.i32", I32, [self.lanes.bits(on), I1(0)])
            highest = self.b.and_(self.b.sub(I32(LANES - 1), behind), I32(LANES - 1))
        pointer = self.pointer(shape, first)
        for part, value in enumerate(values):
            at = self.b.gep(pointer, [I64(part)], source_etype=shape.element)
            self.b.store(self.lanes.lane(value, highest), at, align=shape.type.bytes)

    def _store_runs(
        self, shape: Shape, firsts: Sequence[Value], values: Sequence[Value], on: Value | None
    ) -> None:
        b, whole = self.b, self._interleaved(values)
        count = LANES // len(firsts) * shape.parts
        for run, first in enumerate(firsts):
            value = whole
            if len(firsts) > 1:
                value = b.shuffle_vector(
                    whole, whole, selection(range(run * count, (run + 1) * count))
                )
            pointer = self.pointer(shape, first)
            if on is None:
                b.store(value, pointer, align=shape.type.bytes)
            else:
                here = self._mask_of(on, run, len(firsts), shape.parts)
                self.lanes.masked_store(value, pointer, here)

    def _interleaved(self, values: Sequence[Value]) -> Value:
        """Elements of each lane side by side: a0 b0 a1 b1 ..."""
        if len(values) == 1:
            return values[0]
        evens, odds = self._interleaved(values[::2]), self._interleaved(values[1::2])
        width = LANES * len(values) // 2
        order = [side * width + i for i in range(width) for side in (0, 1)]
        return self.b.shuffle_vector(evens, odds, selection(order))

    # ---- local memory ---------------------------------------------------------------------------

    def _load_words(self, shape: Shape, first: Value, on: Value | None) -> list[Value]:
        """Return each 4-byte word of all lanes is a row."""
        b, pointer = self.b, self.pointer(shape, first)
        words: list[Value] = []
        for number in range(shape.size // WORD_BYTES):
            at = self._row(pointer, number)
            if on is None:
                words.append(b.load(at, typ=vector(I32), align=128))
            else:
                words.append(self.lanes.masked_load(at, on, I32))
        if shape.type.bytes == WORD_BYTES:
            return words
        wide, each = vector(shape.element), shape.type.bytes // WORD_BYTES
        values: list[Value] = []
        for begin in range(0, len(words), each):
            value = b.zext(words[begin], wide)
            for place in range(1, each):
                shift = splat_constant(32 * place, shape.element)
                value = b.or_(value, b.shl(b.zext(words[begin + place], wide), shift))
            values.append(value)
        return values

    def _store_words(
        self, shape: Shape, first: Value, values: Sequence[Value], on: Value | None
    ) -> None:
        b, words, pointer = self.b, list(values), self.pointer(shape, first)
        if shape.type.bytes > WORD_BYTES:
            each = range(shape.type.bytes // WORD_BYTES)
            shifts = [splat_constant(32 * n, shape.element) for n in each]
            words = [b.trunc(b.lshr(v, shift), vector(I32)) for v in values for shift in shifts]
        for number, word in enumerate(words):
            at = self._row(pointer, number)
            if on is None:
                b.store(word, at, align=128)
            else:
                self.lanes.masked_store(word, at, on)

    def _row(self, pointer: Value, number: int) -> Value:
        return self.b.gep(pointer, [I64(number << LOCAL_ROW_BITS)], source_etype=I8)

    def _pointers(self, shape: Shape, lanes: LaneShape, firsts: Sequence[Value]) -> Value:
        """Returns where each lane reaches on the host."""
        b = self.b
        begins: Value = undefined(ir.VectorType(PTR, len(firsts)))
        for run, first in enumerate(firsts):
            begins = b.insert_element(begins, self.pointer(shape, first), I32(run))
        length = LANES // len(firsts)
        spread = b.shuffle_vector(begins, begins, selection(n // length for n in range(LANES)))
        steps = [I64(lane % length * lanes.stride) for lane in range(LANES)]
        return b.gep(spread, [ir.Constant(vector(I64), steps)], source_etype=I8)

    def fetch_ahead(self, shape: Shape, first: Value) -> None:
        """Ask for what lies `AHEAD` bytes behind consecutive places to come into the host's second
        cache. It may lie outside of any allocation: then nothing comes."""
        pointer, extent = self.pointer(shape, first), LANES * shape.size
        for line in range(AHEAD, AHEAD + extent, HOST_LINE):
            place = self.b.gep(pointer, [I64(line)], source_etype=I8)
            reads, second, data = I32(0), I32(2), I32(1)
            self.lanes.intrinsic("llvm.prefetch.p0", ir.VoidType(), [place, reads, second, data])
