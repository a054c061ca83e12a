"""The tables as a whole: what decodes, what does not, and that every form has a sound meaning."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import warploom.isa.ops  # noqa: F401  (fills the tables)
from warploom.core.types import PRED
from warploom.isa.spec import FORMS, Operation, OpSpec, UnknownOpcode, decode
from warploom.isa.terms import Term

MOST = 40
ALL_FORMS = [form for forms in FORMS.values() for form in forms]

# Opcodes that NVIDIA's compilers print for everyday kernels.
EVERYDAY = Path(__file__).with_name("everyday_opcodes.txt").read_text("utf-8").split()


@pytest.mark.parametrize("opcode", EVERYDAY)
def test_everyday_opcodes_decode(opcode: str) -> None:
    assert decode(opcode).text == opcode


@pytest.mark.parametrize(
    ("opcode", "part", "wanted"),
    [
        ("frobnicate.s32", 0, None),
        ("add.rn.s32", 2, "f32"),  # integers are not rounded
        ("add.sat.u32", 2, "s32"),
        ("cvt.f32.s32", 2, "f32"),  # needs a rounding mode
        ("setp.lt.b32", 2, "s32"),  # bits have no order
        ("atom.add.b32", 2, "u32"),
        ("atom.inc.s32", 2, "u32"),
        ("atom.global.add.s64", 3, "u64"),  # .add has no .s64
        ("red.acquire.gpu.global.add.u32", 1, "release"),  # nothing is read to acquire
        ("fma.f32", 1, "rn"),  # fma has no default rounding
        ("ld.global", 2, "u32"),
        ("st.global.nc.f32", 2, "v4"),
        ("atom.global.gpu.never.add.u32", 2, "add"),
        ("shfl.sync.left.b32", 2, "bfly"),
    ],
)
def test_unknown_opcodes_say_where_and_what_could_stand_there(
    opcode: str, part: int, wanted: str | None
) -> None:
    with pytest.raises(UnknownOpcode) as caught:
        decode(opcode)
    assert caught.value.part == part
    assert wanted is None or wanted in caught.value.expected


def opcodes(form: OpSpec) -> list[str]:
    """Opcodes of a form in which every choice of every slot occurs; of the thousands of parts that
    a video operand can be, some do."""
    choices = [[*s.choices[:MOST], *([None] if s.optional else [])] for s in form.slots]
    longest = max((len(c) for c in choices), default=1)
    picks = [[c[i % len(c)] for c in choices] for i in range(longest)]
    picks += list(itertools.islice(itertools.product(*choices), 40))
    return sorted({".".join([form.name, *(p for p in pick if p)]) for pick in picks})


@pytest.mark.parametrize("form", ALL_FORMS, ids=lambda form: form.syntax)
def test_every_form_has_terms_of_its_destinations_types(form: OpSpec) -> None:
    for opcode in opcodes(form):
        operation = decode(opcode)
        needed = sum(o.count for o in operation.spec.sources if not o.optional)
        terms = operation.terms_for(needed)
        if terms:
            elements, type = operation.spec.destinations[0].count, operation.destination_types[0]
            assert type is not None
            assert [t.type.bits for t in terms[:elements]] == [type.bits] * elements
            assert all(t.type == PRED for t in terms[elements:])
            assert arguments(terms) <= set(range(needed))


def test_an_atomic_combines_the_old_value_with_its_operands() -> None:
    for form in ALL_FORMS:
        if form.name not in ("atom", "red"):
            continue
        for opcode in opcodes(form):
            operation: Operation = decode(opcode)
            assert operation.terms == ()
            count = operation.value_count
            assert operation.combine(count).type.bits == operation.modifiers.scalar().bits
            assert arguments((operation.combine(count),)) <= {0, 1, 2}


def test_only_a_cas_has_three_operands() -> None:
    assert arguments((decode("atom.global.cas.b32").combine(2),)) == {0, 1, 2}
    assert arguments((decode("atom.global.exch.b32").combine(1),)) == {1}


def test_every_form_cites_the_manual() -> None:
    assert [form.syntax for form in ALL_FORMS if "PTX ISA" not in form.doc] == []


def arguments(terms: tuple[Term, ...]) -> set[int]:
    """The operands that terms read."""
    found: set[int] = set()
    seen: set[Term] = set()
    pending = list(terms)
    while pending:
        term = pending.pop()
        if term in seen:
            continue
        seen.add(term)
        if term.op == "arg":
            assert isinstance(term.attr, int)
            found.add(term.attr)
        pending += term.args
    return found


@pytest.mark.parametrize(
    ("written", "manual"),
    [
        ("ldmatrix.sync.aligned.x4.m8n8.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16"),
        ("ld.global.acquire.gpu.u32", "ld.acquire.gpu.global.u32"),
        ("ld.cg.global.u32", "ld.global.cg.u32"),
        ("cvt.sat.rzi.u8.f32", "cvt.rzi.sat.u8.f32"),
        ("cvt.f32.rn.f64", "cvt.rn.f32.f64"),
        ("fma.rn.f16x2.relu", "fma.rn.relu.f16x2"),
        ("add.s32.sat", "add.sat.s32"),
        ("atom.add.relaxed.gpu.s32", "atom.relaxed.gpu.add.s32"),
        (
            "mma.sync.aligned.m16n8k32.row.col.s32.satfinite.s8.u8.s32",
            "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32",
        ),
    ],
)
def test_modifiers_may_stand_in_any_order(written: str, manual: str) -> None:
    """ptxas 13 assembles each, as it does the manual's order."""
    found, wanted = decode(written), decode(manual)
    assert (found.spec, found.modifiers) == (wanted.spec, wanted.modifiers)


def test_types_and_state_spaces_keep_their_order() -> None:
    """ptxas 13 distinguishes operands by it."""
    assert decode("dp4a.s32.u32").modifiers != decode("dp4a.u32.s32").modifiers
    for refused in ("cvt.f64.rn.f32", "cvt.rni.sat.f32.u8", "cp.async.cg.global.shared"):
        with pytest.raises(UnknownOpcode):
            decode(refused)
