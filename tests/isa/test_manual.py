"""Every computing instruction against its description in the PTX manual, written a second time in
Python integers and exact numbers (`manual_*`): all modifiers, on drawn and on special operands."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence

import manual_atomics
import manual_comparisons
import manual_conversions
import manual_floats
import manual_integers
import manual_moves
import manual_video
import pytest
from opcode_values import apply_all

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.core.types import ScalarType
from warploom.isa.spec import FORMS, HINTS, Operation, OpSpec, Unit, UnknownOpcode, decode
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect

OPCODES = 100
"""Operations of each form; half of the forms have no more."""

LANES = 2000
"""Of all operations of a form together."""

RESULTS = {
    Unit.FLOAT: manual_floats.RESULTS,
    Unit.INTEGER: manual_integers.RESULTS | manual_video.RESULTS,
    Unit.LOGIC: manual_comparisons.RESULTS | manual_integers.LOGIC | manual_moves.LOGIC,
    Unit.CONVERT: manual_conversions.RESULTS,
    Unit.MOVE: manual_moves.RESULTS,
}
SPECS = [
    spec
    for forms in FORMS.values()
    for spec in forms
    if spec.semantics is not None and spec.name in RESULTS.get(spec.unit, {})
]


def every(spec: OpSpec) -> Iterator[Operation]:
    """Yields every operation of a form; a text that is another form's is left out."""
    choices = [(*slot.choices, *[""] * slot.optional) for slot in spec.slots]
    for parts in itertools.product(*choices):
        operation = decoded(spec, parts)
        if operation is not None:
            yield operation


def decoded(spec: OpSpec, parts: Sequence[str]) -> Operation | None:
    """Returns the operation of a form with these modifiers; None if there is none."""
    try:
        operation = decode(".".join(filter(None, (spec.name, *parts))))
    except UnknownOpcode:
        return None
    return operation if operation.spec is spec else None


def some(spec: OpSpec, rng: random.Random) -> Iterator[Operation]:
    """Yields random operations of a form."""
    while True:
        choices = [rng.choice((*slot.choices, *[""] * slot.optional)) for slot in spec.slots]
        operation = decoded(spec, choices)
        if operation is not None:
            yield operation


def operations_of(spec: OpSpec) -> tuple[random.Random, list[Operation]]:
    """Returns a generator with a seed of the form's own, and OPCODES operations of the form: all
    where it has no more."""
    rng = random.Random(f"{spec.syntax} {spec.slots}")
    count = math.prod(len(slot.choices) + slot.optional for slot in spec.slots)
    if count <= OPCODES:
        return rng, list(every(spec))
    return rng, list(itertools.islice(some(spec, rng), OPCODES))


def lane_of(types: Sequence[ScalarType], rng: random.Random) -> list[int]:
    """Returns the operands of a lane, some of which are near the one before or its complement: sums
    and comparisons change there."""
    lane: list[int] = []
    for type in types:
        if lane and rng.random() < 0.2:
            near = rng.choice((lane[-1], ~lane[-1])) + rng.randrange(-1, 2)
            lane.append(near & ((1 << type.bits) - 1))
        else:
            lane.append(operand(type, rng))
    return lane


def operand(type: ScalarType, rng: random.Random) -> int:
    """Returns the bits of an operand: any, few of them set, or near where something changes."""
    bits, top = type.bits, (1 << type.bits) - 1
    way = rng.randrange(5)
    if way == 0:
        return rng.randrange(8) & top
    if way == 1:
        edge = rng.choice((0, 1 << (bits - 1), top, 1 << rng.randrange(bits)))
        return (edge + rng.randrange(-2, 3)) & top
    if way == 2:
        return rng.getrandbits(bits) & rng.getrandbits(bits) & rng.getrandbits(bits)
    if way == 3 and type.is_float:
        return special(type, rng)
    return rng.getrandbits(bits)


def special(type: ScalarType, rng: random.Random) -> int:
    """Returns bits near zero, the smallest normal number, one, infinity and NaNs, in each element
    of the type."""
    name = type.name.removesuffix("x2")
    format = manual_floats.FORMATS[name]
    width = type.bits // 2 if type.name.endswith("x2") else type.bits
    one = format.bias << format.fraction
    whole = 0
    for place in range(0, type.bits, width):
        near = rng.choice((0, 1 << format.fraction, one, format.infinity))
        size = max(0, near + rng.randrange(-2, 3)) | rng.choice(
            (0, rng.getrandbits(format.fraction))
        )
        whole |= (size & (format.sign - 1) | rng.choice((0, format.sign))) << place
    return whole


def name_of(spec: OpSpec) -> str:
    return f"{spec.syntax} {' '.join('/'.join(slot.choices)[:60] for slot in spec.slots[-2:])}"


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_results_are_those_of_the_manual(spec: OpSpec) -> None:
    rng, operations = operations_of(spec)
    width = LANES // len(operations)
    result = RESULTS[spec.unit][spec.name]
    for operation in operations:
        optional = [o.optional for o in spec.sources]
        count = len(operation.source_types) - rng.randrange(sum(optional) + 1)
        types = [t for t in operation.source_types[:count] if t is not None]
        lanes = [lane_of(types, rng) for _ in range(width)]
        columns = [[lane[i] for lane in lanes] for i in range(len(types))]
        got = apply_all(operation.text, *columns)
        for index, values in enumerate(lanes):
            wanted = result(operation, values)
            if wanted is not None:
                found = [column[index] for column in got]
                assert list(wanted) == found, (operation.text, [hex(v) for v in values])


ATOMICS = [
    spec
    for forms in FORMS.values()
    for spec in forms
    if spec.semantics and spec.unit is Unit.ATOMIC
]


@pytest.mark.parametrize("spec", ATOMICS, ids=name_of)
def test_atomics_leave_and_give_what_the_manual_says(spec: OpSpec) -> None:
    rng, operations = operations_of(spec)
    width = LANES // len(operations)
    for operation in operations:
        type = operation.modifiers.scalar()
        optional = [o.optional and o.name not in HINTS for o in spec.sources]
        count = operation.value_count - rng.randrange(sum(optional) + 1)
        lanes = [lane_of([type] * (count + 1), rng) for _ in range(width)]
        columns = [collect([lane[i] for lane in lanes], type) for i in range(count + 1)]
        new, answer = (
            evaluate(term, columns, width)
            for term in (operation.combine(count), operation.answer(count))
        )
        for index, values in enumerate(lanes):
            wanted = manual_atomics.RESULTS[spec.name](operation, values)
            found = int(new[index]), int(answer[index])
            assert wanted in (None, found), (operation.text, [hex(v) for v in values])


@pytest.mark.parametrize("name", ["ex2", "tanh"])
@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_approximations_of_pairs_are_those_of_their_halves(name: str, type: str) -> None:
    """Those of the halves are within the manual's bounds (`test_half_ops`)."""
    opcode = f"{name}.approx.ftz" if (name, type) == ("ex2", "bf16") else f"{name}.approx"
    halves = list(range(0, 1 << 16, 5))
    pairs = [a << 16 | b for a, b in zip(halves, reversed(halves), strict=True)]
    single = dict(zip(halves, apply_all(f"{opcode}.{type}", halves)[0], strict=True))
    wanted = [single[p >> 16] << 16 | single[p & 0xFFFF] for p in pairs]
    assert apply_all(f"{opcode}.{type}x2", pairs) == [wanted]
