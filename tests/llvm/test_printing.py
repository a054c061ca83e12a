"""The printer of LLVM IR prints what llvmlite prints, but for spaces."""

from __future__ import annotations

import re
from typing import Any

import pytest
from llvmlite import binding, ir

from warploom.llvm.printing import ModulePrinter

I1, I32, I64, PTR = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.PointerType()
VECTOR = ir.VectorType(I32, 4)


def without_spaces(text: str) -> list[str]:
    """Returns the lines of a text that are not empty, without repeated and trailing spaces."""
    lines = [re.sub(r" ?,", ",", " ".join(line.split())) for line in text.split("\n")]
    return [line for line in lines if line]


@pytest.fixture
def module() -> ir.Module:
    """A module with an instruction of every printed class, weights, and a call."""
    module: Any = ir.Module("printed")
    pair = ir.ArrayType(I64, 2)
    table = ir.GlobalVariable(module, pair, "table")
    table.initializer = ir.Constant(pair, [I64(1), I64(-2)])
    type = ir.FunctionType(I32, [PTR, I32, ir.FloatType(), VECTOR])
    callee = ir.Function(module, type, "callee")
    function = ir.Function(module, type, "function")
    address, number, real, lanes = function.args
    address.add_attribute("noalias")
    entry = function.append_basic_block("entry")
    b: Any = ir.IRBuilder(entry)
    slot = b.alloca(I32)
    b.store(b.add(number, I32(-1), flags=("nsw",)), slot)
    at = b.gep(address, [I64(3)], inbounds=True, source_etype=I32)
    b.store(b.load(at, typ=I32, align=4), b.gep(address, [I64(1)], source_etype=I32), align=1)
    less = b.and_(b.icmp_signed("<", number, I32(7)), b.fcmp_unordered("<", real, real))
    chosen = b.select(less, b.fptosi(b.fneg(real), I32), b.call(callee, function.args))
    changed = b.insert_element(lanes, chosen, I32(0))
    shuffled = b.shuffle_vector(changed, lanes, ir.Constant(VECTOR, [I32(i) for i in (0, 5, 2, 7)]))
    after, done = function.append_basic_block('a "name"'), function.append_basic_block("done")
    b.cbranch(less, after, done).set_weights([1, 99])
    b.position_at_end(after)
    b.switch(b.extract_element(shuffled, I32(1)), done).add_case(I32(4), after)
    b.position_at_end(done)
    total = b.phi(I32)
    total.add_incoming(I32(0), entry)
    total.add_incoming(number, after)
    last = function.append_basic_block("last")
    b.branch(last)
    b.position_at_end(last)
    b.ret(b.zext(b.trunc(total, I1), I32))
    return module


def test_the_text_is_that_of_llvmlite(module: ir.Module) -> None:
    text = ModulePrinter(module).text()
    assert without_spaces(text) == without_spaces(str(module))


def test_llvm_reads_the_text(module: ir.Module) -> None:
    parsed = binding.parse_assembly(ModulePrinter(module).text())
    parsed.verify()
    assert {one.name for one in parsed.functions} == {"callee", "function"}
