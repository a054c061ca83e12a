"""Describes instructions: syntax, operands, the unit that runs them, and what they compute.

Each line of syntax in the PTX manual becomes one `OpSpec`, declared with `@op` in `isa/ops/`:

    @op("add{.rnd}{.ftz}{.sat}.type", dst="d:type", src="a:type, b:type", unit=Unit.FLOAT,
        rnd=ROUNDINGS, type=("f32",))
    def add_f32(m: Modifiers, a: Term, b: Term) -> Term: ...

In the syntax a name with choices is a slot, any other name stands for itself, and braces make it
optional. `decode` turns the text of an opcode ("add.rz.f32") into an `Operation`.

Two things that stand elsewhere in the text are part of the form here. An operand whose name begins
with % is implicit: no text shows it, the parser puts that hidden register there (`%cc`, the carry
flag). A part of an operand (`%r1.b2`) or its negation (`-%r1`), as video instructions take them, is
a modifier behind all others: "vadd.u32.u32.u32.a=b2".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

from warploom.core.lazy import cached_property
from warploom.core.types import TYPES, ScalarType, widened
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.preconditions import BY_NAME, Precondition
from warploom.isa.terms import Term, argument


class Unit(Enum):
    """The classes by which instructions are counted."""

    INTEGER = "integer"
    FLOAT = "float"
    CONVERT = "convert"
    LOGIC = "logic"
    MOVE = "move"
    MEMORY = "memory"
    ATOMIC = "atomic"
    CONTROL = "control"
    BARRIER = "barrier"
    WARP = "warp"
    MATRIX = "matrix"
    TEXTURE = "texture"


@dataclass(frozen=True, slots=True)
class Slot:
    """One dotted place in an opcode; a flag is a slot with one choice, its own name."""

    name: str
    choices: tuple[str, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand: its name, whether it is written, and the type by which it is accessed.

    `type` is the name of a slot, "wide" (twice the width of slot `type`), the name of a scalar
    type, or one of `address`, `label`, `targets`, `function`, `any`, `texels`, `handle`,
    `axes`, `selector`, `zero`, `multiplicand`, `sign`, `transposition`, `groups`, `tensor`,
    `offsets`, `map_axis`, `map_value`, `map_bytes`, `scale_a`, `scale_b`. `count` is how
    many of it stand in braces (1: no braces), spelled `a:f32*4`; spelled `a:f32*n/2`, it is the n
    of slot `shape` divided by `divisor`. `updated`: it is read before it is written, spelled `+d`.
    """

    name: str
    type: str
    written: bool
    optional: bool
    count: int = 1
    divisor: int = 0
    updated: bool = False

    @property
    def implicit(self) -> bool:
        """Returns whether the operand is in no text, such as `%cc`."""
        return self.name.startswith("%")


@dataclass(frozen=True)
class Modifiers:
    """The modifiers of one opcode: `m["rnd"]` is a choice or None, `"ftz" in m` asks a flag."""

    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str | None:
        return self.values.get(name)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str, default: str) -> str:
        """Returns the choice of a slot, or `default` where it was left out."""
        return self.values.get(name, default)

    def scalar(self, name: str = "type") -> ScalarType:
        """Returns the scalar type that a slot names."""
        return TYPES[self.values[name]]


Semantics = Callable[..., "Term | tuple[Term, ...]"]

Release = tuple[int, int]
"""A version of PTX, or a compute capability."""

OLDEST: Release = (1, 0)


@dataclass(frozen=True, slots=True)
class Since:
    """The version of PTX and the compute capability that brought a syntax line; those of the tables
    in `isa.versions` and `isa.targets` if they are newer."""

    version: Release = OLDEST
    target: Release = OLDEST


ALWAYS = Since()


@dataclass(frozen=True, eq=False)
class OpSpec:
    """One syntax line of the manual; `semantics` is None for what only a machine can do.

    `kind` says what executes it, and its effects. `preconditions` are those that the manual sets
    for it, in the order in which they are checked.
    """

    name: str
    syntax: str
    slots: tuple[Slot, ...]
    operands: tuple[OperandSpec, ...]
    unit: Unit
    kind: OpKind
    semantics: Semantics | None
    doc: str
    preconditions: tuple[Precondition, ...] = ()
    since: Since = ALWAYS

    @cached_property
    def destinations(self) -> tuple[OperandSpec, ...]:
        """Returns the operands that are written, in the order of the text."""
        return tuple(o for o in self.operands if o.written)

    @cached_property
    def sources(self) -> tuple[OperandSpec, ...]:
        """Returns the operands that are only read, in the order of the text."""
        return tuple(o for o in self.operands if not o.written)

    @cached_property
    def shown(self) -> tuple[OperandSpec, ...]:
        """Returns the operands that are in a text: all but the implicit ones."""
        return tuple(o for o in self.operands if not o.implicit)

    @cached_property
    def needed(self) -> int:
        """Returns the number of operands that every text has: neither implicit nor optional."""
        return sum(not o.optional for o in self.shown)

    @cached_property
    def member_mask(self) -> int | None:
        """Returns the place, among the destinations and then the sources, of the operand that says
        which lanes take part (`membermask`); None where there is none."""
        names = [o.name for o in (*self.destinations, *self.sources)]
        return names.index("membermask") if "membermask" in names else None

    @cached_property
    def operand_preconditions(self) -> tuple[Precondition, ...]:
        """Returns the preconditions on its operands."""
        return tuple(precondition for precondition in self.preconditions if precondition.operands)

    @cached_property
    def memory_precondition(self) -> Precondition | None:
        """Returns the precondition on the word that an atomic finds in memory; None where there is
        none."""
        return next(
            (precondition for precondition in self.preconditions if not precondition.operands), None
        )

    @cached_property
    def updated(self) -> tuple[int, ...]:
        """Returns the places of the destinations that are read before they are written."""
        return tuple(place for place, o in enumerate(self.destinations) if o.updated)

    @cached_property
    def only_shared(self) -> bool:
        """Returns whether the state space that a text may name is shared memory in every case: then
        a generic address must be one of shared memory, too."""
        choices = [choice for slot in self.slots if slot.name == "space" for choice in slot.choices]
        return bool(choices) and all(choice.startswith("shared") for choice in choices)

    @cached_property
    def has_implicit(self) -> bool:
        """Returns whether any operand is in no text."""
        return any(o.implicit for o in self.operands)


@dataclass(frozen=True, eq=False)
class Operation:
    """An opcode with its modifiers chosen. One object for each distinct opcode text."""

    text: str
    spec: OpSpec
    modifiers: Modifiers

    @cached_property
    def name(self) -> str:
        """Returns the name of the instruction, such as "mad": the opcode up to its first dot."""
        return self.spec.name

    @cached_property
    def kind(self) -> OpKind:
        """Returns what executes the operation, and with what effects."""
        return self.spec.kind

    def has(self, effects: Effect) -> bool:
        """Returns whether the operation has any of the effects."""
        return self.spec.kind.has(effects)

    @cached_property
    def opcode(self) -> str:
        """Returns the opcode as a text has it: without the parts that stand at its operands in the
        text."""
        return ".".join(p for p in self.text.split(".") if not is_decoration(p))

    @cached_property
    def decorations(self) -> Mapping[str, tuple[str, str]]:
        """Returns the text before and behind an operand, by the name of the operand:
        `{"a": ("-", ".b2")}` for an operand a that is written `-%r1.b2`."""
        found: dict[str, tuple[str, str]] = {}
        for part in filter(is_decoration, self.text.split(".")):
            name, _, selected = part.removeprefix("-").partition("=")
            before, behind = found.get(name, ("", ""))
            found[name] = ("-", behind) if part.startswith("-") else (before, f".{selected}")
        return found

    def type_of(self, operand: OperandSpec) -> ScalarType | None:
        """Returns the scalar type of an operand; None for addresses, labels and the like."""
        return resolve_type(operand.type, self.modifiers)

    def count_of(self, operand: OperandSpec) -> int:
        """Returns how many of an operand stand in braces; 1 for no braces."""
        if not operand.divisor:
            return operand.count
        found = re.fullmatch(r"m\d+n(\d+)k\d+", self.modifiers.text("shape", ""))
        assert found is not None
        return int(found[1]) // operand.divisor

    @cached_property
    def source_types(self) -> tuple[ScalarType | None, ...]:
        """Returns the types of the sources; of a source in braces, one for each value in them."""
        return tuple(self.type_of(o) for o in self.spec.sources for _ in range(self.count_of(o)))

    @cached_property
    def destination_types(self) -> tuple[ScalarType | None, ...]:
        """Returns the types of the destinations, one for each, also for one in braces."""
        return tuple(self.type_of(o) for o in self.spec.destinations)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Returns the terms of its results, one for each destination; empty for what only a machine
        can do.

        `argument(i)` in them is source operand i, as the syntax orders them.
        """
        return self.terms_for(len(self.source_types))

    def terms_for(self, count: int) -> tuple[Term, ...]:
        """Returns the terms where only the first `count` sources are written."""
        return _terms(self, count)

    @cached_property
    def value_count(self) -> int:
        """Returns the greatest number of operands that an atomic combines with memory: its sources
        but the address and hints."""
        return sum(o.type != "address" and o.name not in HINTS for o in self.spec.sources)

    def combine(self, count: int, space: str = "") -> Term:
        """Returns what an atomic with `count` such operands leaves in memory: `argument(0)` is the
        value that was there before, `argument(1)` and on are the operands, as wide as it. `space`
        is where its address leads, if the opcode does not say."""
        return _atomic_terms(self, count, space)[0]

    def answer(self, count: int) -> Term:
        """Returns the term of what an atomic gives: the value before, unless its form says more."""
        return _atomic_terms(self, count, "")[1]


HINTS = ("policy", "hint")
"""Operands that change no value."""


@cache
def _atomic_terms(operation: Operation, count: int, space: str) -> tuple[Term, Term]:
    """Returns the terms of an atomic: the new value in memory, and that of its destination."""
    assert operation.spec.unit is Unit.ATOMIC
    assert operation.spec.semantics is not None
    modifiers = operation.modifiers
    if space and "space" not in modifiers:
        modifiers = Modifiers({**modifiers.values, "space": space})
    args = [argument(i, modifiers.scalar()) for i in range(count + 1)]
    result = operation.spec.semantics(modifiers, *args)
    return result if isinstance(result, tuple) else (result, args[0])  # type: ignore[return-value]


def is_decoration(part: str) -> bool:
    """Returns whether a part of an opcode stands at an operand in the text: `a=b2` or `-a`."""
    return "=" in part or part.startswith("-")


def resolve_type(text: str, modifiers: Modifiers) -> ScalarType | None:
    """Returns the scalar type that the declared type of an operand means under these modifiers."""
    if text == "wide":
        return widened(modifiers.scalar())
    if text in modifiers:
        return TYPES.get(modifiers.text(text, ""))
    return TYPES.get(text)


FORMS: dict[str, list[OpSpec]] = {}
"""Every syntax line that runs, by the name of its instruction."""

ABSENT: dict[str, list[OpSpec]] = {}
"""Those of kind ABSENT: known, and refused when a module is loaded. `doc` is the reason."""


def op(
    syntax: str,
    kind: OpKind = OpKind.COMPUTE,
    since: Since = ALWAYS,
    /,
    *,
    dst: str = "",
    src: str = "",
    unit: Unit,
    needs: tuple[str, ...] = (),
    **choices: tuple[str, ...],
) -> Callable[[Semantics], Semantics]:
    """Declares one syntax line; the decorated function gives its terms. `needs` are the names of
    its preconditions (`isa.preconditions`), in the order in which they are checked."""

    def register(semantics: Semantics) -> Semantics:
        """Declares the syntax line, with what `semantics` computes."""
        declare(
            syntax,
            kind,
            since,
            dst=dst,
            src=src,
            unit=unit,
            semantics=semantics,
            doc="",
            needs=needs,
            **choices,
        )
        return semantics

    return register


def declare(
    syntax: str,
    kind: OpKind,
    since: Since = ALWAYS,
    /,
    *,
    dst: str = "",
    src: str = "",
    unit: Unit,
    semantics: Semantics | None = None,
    doc: str = "",
    needs: tuple[str, ...] = (),
    **choices: tuple[str, ...],
) -> OpSpec:
    """Declares one syntax line, and returns it; without `semantics`, its kind says what the
    machines do.

    `doc` then says what it computes, as the docstring of `semantics` does otherwise. `needs` are
    the names of its preconditions.
    """
    name = re.split(r"[.{]", syntax, maxsplit=1)[0]
    operands = (*_operands(dst, written=True), *_operands(src, written=False))
    text = (semantics.__doc__ or "") if semantics is not None else doc
    slots = _slots(syntax, choices)
    needed = tuple(BY_NAME[need] for need in needs)
    spec = OpSpec(name, syntax, slots, operands, unit, kind, semantics, text, needed, since)
    (ABSENT if kind is OpKind.ABSENT else FORMS).setdefault(name, []).append(spec)
    return spec


def _slots(syntax: str, choices: Mapping[str, tuple[str, ...]]) -> tuple[Slot, ...]:
    """Returns the slots of a syntax line: each name behind a dot, with its choices, optional in
    braces. A name without choices is its only choice."""
    found = re.findall(r"(\{)?\.([\w:=-]+)\}?", syntax)
    return tuple(Slot(n, choices.get(n, (n,)), optional=bool(brace)) for brace, n in found)


def _operands(text: str, *, written: bool) -> list[OperandSpec]:
    """Returns the operands of a list such as "+d:type, a:f32*4?" (`OperandSpec`)."""
    specs: list[OperandSpec] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, text = part.rstrip("?").partition(":")
        type, _, count = text.partition("*")
        optional, updated = part.endswith("?"), name.startswith("+")
        plain = name.removeprefix("+")
        if count.startswith("n/"):
            divisor = int(count.removeprefix("n/"))
            specs.append(OperandSpec(plain, type, written, optional, 1, divisor, updated))
        else:
            fixed = int(count or 1)
            specs.append(OperandSpec(plain, type, written, optional, fixed, 0, updated))
    return specs


class UnknownOpcode(Exception):
    """No table has this opcode.

    `part` is the dotted part to blame (0 is the name); `expected` is what could stand there.
    """

    def __init__(self, text: str, part: int, expected: tuple[str, ...]) -> None:
        super().__init__(text)
        self.text, self.part, self.expected = text, part, expected


_DECODED: dict[str, Operation] = {}


def decode(text: str) -> Operation:
    """Returns the operation that an opcode's text names, such as "mad.lo.s32".

    Raises UnknownOpcode where the name or one of its modifiers is in no table.
    """
    found = _DECODED.get(text)
    if found is None:
        found = _DECODED[text] = _decode(text)
    return found


def _decode(text: str) -> Operation:
    """Computes `decode`: the first syntax line of that name that matches the parts in order, else
    the first that matches them in any order. To blame an unknown opcode, remembers how far the
    lines got that matched the most parts, and what each of them expected there."""
    name, *parts = text.split(".")
    best = 0
    expected: tuple[str, ...] = ()
    forms = (*FORMS.get(name, ()), *ABSENT.get(name, ()))
    for spec in forms:
        values, matched, wanted = _match(spec.slots, parts)
        if values is not None:
            return Operation(text, spec, Modifiers(values))
        if matched + 1 > best:
            best, expected = matched + 1, wanted
        elif matched + 1 == best:
            expected += wanted
    for spec in forms:  # ptxas takes modifiers in any order
        values = _assign(spec.slots, parts)
        if values is not None:
            return Operation(text, spec, Modifiers(values))
    raise UnknownOpcode(text, best, tuple(dict.fromkeys(expected)))


_TYPE = re.compile(r"(?:(?:b|u|s|f|bf|tf)\d+|u?e\dm\d|s\df\d)(?:x\d+)?")
_SPACE = re.compile(r"global|shared(?:::\w+)?|local|const|param")


def _assign(slots: tuple[Slot, ...], parts: list[str]) -> dict[str, str] | None:
    """Returns the values of slots that take parts in any order, None where some part is left.

    Types keep their order among each other, and so do state spaces, as for ptxas: they say which
    operand has which.
    """
    if not slots:
        return None if parts else {}
    slot, rest = slots[0], slots[1:]
    at = next((i for i, part in enumerate(parts) if part in slot.choices), None)
    if at is not None and not _overtakes(parts, at):
        values = _assign(rest, parts[:at] + parts[at + 1 :])
        if values is not None:
            return {slot.name: parts[at], **values}
    return _assign(rest, parts) if slot.optional else None


def _overtakes(parts: list[str], at: int) -> bool:
    """Returns whether a type stands behind another one, or a state space behind another one."""
    return any(
        kind.fullmatch(parts[at]) and any(map(kind.fullmatch, parts[:at]))
        for kind in (_TYPE, _SPACE)
    )


def _match(
    slots: tuple[Slot, ...], parts: list[str]
) -> tuple[dict[str, str] | None, int, tuple[str, ...]]:
    """Matches parts to slots in order: returns the values, or None with the number of parts that
    matched and what could have stood next."""
    if not slots:
        return ({}, 0, ()) if not parts else (None, 0, ())
    slot, rest = slots[0], slots[1:]
    matched, wanted = 0, slot.choices
    if parts and parts[0] in slot.choices:
        values, depth, wanted = _match(rest, parts[1:])
        if values is not None:
            return {slot.name: parts[0], **values}, 0, ()
        matched = depth + 1
    if slot.optional:
        values, depth, rest_wanted = _match(rest, parts)
        if values is not None:
            return values, 0, ()
        if depth > matched:
            matched, wanted = depth, rest_wanted
        elif depth == matched:
            wanted += rest_wanted
    return None, matched, wanted


@lru_cache(maxsize=4096)
def _terms(operation: Operation, count: int) -> tuple[Term, ...]:
    """Computes `Operation.terms_for`."""
    if operation.spec.semantics is None or operation.spec.unit is Unit.ATOMIC:
        return ()
    types = operation.source_types[:count]
    args = [argument(i, t) for i, t in enumerate(types) if t is not None]
    result = operation.spec.semantics(operation.modifiers, *args)
    return result if isinstance(result, tuple) else (result,)
