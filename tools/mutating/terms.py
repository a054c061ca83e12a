"""Draws errors in terms: one node of what one opcode computes is replaced by another.

An error may leave all results as they are, such as swapped operands of an addition. Both terms are
therefore computed from many operands, and a draw without a difference is no mutant.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from form_kernels import drawn

import warploom.isa.ops  # noqa: F401  (fills the tables)
from mutating.mutant import Mutant, Subject
from warploom.core.types import U32, ScalarType, signed, unsigned
from warploom.isa import spec as isa_spec
from warploom.isa.spec import FORMS, Modifiers, Operation, Unit
from warploom.isa.terms import INTEGRAL_ROUNDINGS, ROUNDINGS, Term, show
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect

OPEN = ("createpolicy",)
"""Instructions whose results the manual leaves open: any is right."""

SPECS = tuple(
    spec
    for forms in FORMS.values()
    for spec in forms
    if spec.semantics is not None and spec.name not in OPEN
)

OTHER_OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("sub", "or"),
    "sub": ("add",),
    "mul": ("add",),
    "and": ("or",),
    "or": ("and", "xor"),
    "xor": ("or",),
    "shl": ("lshr",),
    "lshr": ("shl", "ashr"),
    "ashr": ("lshr",),
    "div": ("rem",),
    "rem": ("div",),
    "lt": ("le", "gt"),
    "le": ("lt",),
    "gt": ("ge", "lt"),
    "ge": ("gt",),
    "eq": ("ne",),
    "ne": ("eq",),
    "min": ("max",),
    "max": ("min",),
    "fmin": ("fmax",),
    "fmax": ("fmin",),
    "fadd": ("fsub",),
    "fsub": ("fadd",),
    "fmul": ("fadd",),
    "fdiv": ("fmul",),
    "fabs": ("fneg",),
    "fneg": ("fabs",),
    "clz": ("popc",),
    "popc": ("clz",),
}
"""Operations with operands and results of the same types."""

BY_SIGN = ("min", "max", "div", "rem", "lt", "le", "gt", "ge", "extend")
"""Operations of integers whose results depend on whether the first operand is signed."""

LANES = 512
ROUNDS = 6


Edit = Callable[[Term], Term]
"""Returns what stands in place of a node."""


def draw_term(rng: random.Random) -> Mutant | None:
    """Returns an error in an opcode, any form of which is equally probable; None where the draw
    changes no result."""
    spec = rng.choice(SPECS)
    operation = drawn(spec, rng)
    results = _results(operation)
    index = rng.randrange(len(results))
    nodes = list(_nodes(results[index]))
    place = rng.randrange(len(nodes))
    edits = list(_edits(nodes[place], operation))
    if not edits:
        return None
    change, edit = rng.choice(edits)
    if not _differs(results[index], _with(results[index], place, edit), rng):
        return None
    before, after = (show(term)[:60] for term in (nodes[place], edit(nodes[place])))
    text = f"{operation.text}, result {index}: {change}: {before} -> {after}"
    return Mutant(subject(operation), text, lambda: _plant(operation, index, place, edit))


def subject(operation: Operation) -> Subject:
    """Returns the form of an operation as the subject of errors."""
    spec = operation.spec
    return "term", f"{spec.syntax} {FORMS[spec.name].index(spec)}"


def _results(operation: Operation) -> tuple[Term, ...]:
    """Returns the terms of an operation with all its operands; of an atomic, those that its
    semantics give: that of the new value, and of the result if it is not the old value."""
    if operation.spec.unit is Unit.ATOMIC:
        count = operation.value_count
        both = operation.combine(count), operation.answer(count)
        return both if operation.spec.destinations and both[1].op != "arg" else both[:1]
    return operation.terms


def _nodes(term: Term) -> Iterator[Term]:
    """Yields the distinct nodes of a term, operands before what uses them."""
    seen: set[Term] = set()

    def walk(node: Term) -> Iterator[Term]:
        """Yields the nodes that are not yet seen."""
        if node not in seen:
            seen.add(node)
            for each in node.args:
                yield from walk(each)
            yield node

    return walk(term)


def _with(term: Term, place: int, edit: Edit) -> Term:
    """Returns a term with another node at a place of `_nodes`."""
    nodes = list(_nodes(term))
    changed: dict[Term, Term] = {nodes[place]: edit(nodes[place])}
    for node in nodes[place + 1 :]:
        changed[node] = replace(node, args=tuple(changed.get(each, each) for each in node.args))
    return changed.get(term, term)


def _signature(node: Term) -> tuple[Hashable, ...]:
    """Returns what a node has in common with those at the same place of other opcodes."""
    below = tuple((each.op, each.type.name) for each in node.args)
    return node.op, node.type.name, node.attr if node.args else None, below


def _alike(term: Term, node: Term) -> list[int]:
    """Returns the places in a term of the nodes with a node's signature."""
    wanted = _signature(node)
    return [place for place, each in enumerate(_nodes(term)) if _signature(each) == wanted]


def _edits(node: Term, operation: Operation) -> Iterator[tuple[str, Edit]]:
    """Yields the changes of a node, each with what it does."""
    for other in OTHER_OPERATIONS.get(node.op, ()):
        yield "operation", partial(replace, op=other)
    for rounding in (ROUNDINGS, INTEGRAL_ROUNDINGS):
        if node.attr in rounding:
            for mode in rounding:
                if mode != node.attr:
                    yield "rounding", partial(replace, attr=mode)
    if node.op == "const":
        for step in (1, -1):
            yield "off by one", partial(_stepped, step=step)
    if node.op == "arg":
        for index, type in enumerate(operation.source_types):
            if type == node.type and index != node.attr:
                yield "other operand", partial(replace, attr=index)
    yield from _operand_edits(node)


def _stepped(node: Term, step: int) -> Term:
    """Returns a constant that is one more or less."""
    return replace(node, attr=(int(str(node.attr)) + step) & ((1 << node.type.bits) - 1))


def _operand_edits(node: Term) -> Iterator[tuple[str, Edit]]:
    """Yields the changes of operands: two swapped, one of them alone instead of the node, the first
    read as signed where it is unsigned."""
    args = node.args
    for at in range(len(args) - 1):
        if args[at].type.bits == args[at + 1].type.bits:
            yield "operands swapped", partial(_swapped, at=at)
    for at, each in enumerate(args):
        if each.type == node.type:
            yield "operation left out", partial(_operand, at=at)
    if node.op in BY_SIGN and args[0].type.is_integer:
        yield "signedness", _other_sign


def _swapped(node: Term, at: int) -> Term:
    """Returns a node with two operands swapped."""
    args = node.args
    return replace(node, args=(*args[:at], args[at + 1], args[at], *args[at + 2 :]))


def _operand(node: Term, at: int) -> Term:
    """Returns an operand of a node."""
    return node.args[at]


def _other_sign(node: Term) -> Term:
    """Returns a node whose first operand is read as signed where it is unsigned, or the other way
    round."""
    first = node.args[0]
    other = (unsigned if first.type.is_signed else signed)(first.type.bits)
    return replace(node, args=(Term("reinterpret", other, (first,)), *node.args[1:]))


def _plant(operation: Operation, index: int, place: int, edit: Edit) -> None:
    """Changes a node in all opcodes of an operation's form that have one with its signature, and as
    many before it."""
    spec = operation.spec
    original = spec.semantics
    assert original is not None
    term = _results(operation)[index]
    node = list(_nodes(term))[place]
    number = _alike(term, node).index(place)

    def wrong(modifiers: Modifiers, *args: Term) -> Term | tuple[Term, ...]:
        """Returns the results, of which one is wrong."""
        result = original(modifiers, *args)
        results = list(result) if isinstance(result, tuple) else [result]
        places = _alike(results[index], node) if index < len(results) else []
        if number < len(places):
            results[index] = _with(results[index], places[number], edit)
        return tuple(results) if isinstance(result, tuple) else results[0]

    object.__setattr__(spec, "semantics", wrong)
    for computed in (isa_spec._terms, isa_spec._atomic_terms):  # pyright: ignore[reportPrivateUsage]
        computed.cache_clear()
    isa_spec._DECODED.clear()  # pyright: ignore[reportPrivateUsage]


def _differs(one: Term, other: Term, rng: random.Random) -> bool:
    """Returns whether two terms were seen to differ in a lane."""
    types = {n.attr: n.type for term in (one, other) for n in _nodes(term) if n.op == "arg"}
    count = max((int(str(index)) for index in types), default=-1) + 1
    sources = [types.get(index, U32) for index in range(count)]
    for _ in range(ROUNDS):
        lanes = [collect(_operands(type, rng), type) for type in sources]
        left, right = (evaluate(term, lanes, LANES) for term in (one, other))
        if any(int(a) != int(b) for a, b in zip(left, right, strict=True)):
            return True
    return False


def _operands(type: ScalarType, rng: random.Random) -> Sequence[int]:
    """Returns bits for each lane: random ones, few ones, and those at the ends of the range."""
    bits = type.bits
    top = (1 << bits) - 1

    def one() -> int:
        """Returns the bits of one lane."""
        way = rng.randrange(4)
        if way == 0:
            return rng.randrange(8)
        if way == 1:
            return (
                rng.choice((0, 1 << (bits - 1), top, 1 << rng.randrange(bits)))
                + rng.randrange(-2, 3)
            ) & top
        if way == 2:
            return rng.getrandbits(bits) & rng.getrandbits(bits) & rng.getrandbits(bits)
        return rng.getrandbits(bits)

    return [one() for _ in range(LANES)]
