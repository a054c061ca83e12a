"""Emits floating-point operations in rounding modes other than nearest-even (`.rz`, `.rm`, `.rp`).

An operation becomes a call of a function that sets the processor's rounding mode, computes with
LLVM's constrained intrinsics, and restores nearest-even:

    fadd, mode rz, <32 x float>  ->  call <32 x float> @"wl.round.fadd.rz.v32f32"(%a, %b)

The functions are `strictfp` and `noinline`, so that LLVM does not move other arithmetic into the
changed mode, and may reorder all other code freely. A name holds operation, mode and types; from
it, `definition` gives the body when a module is compiled (`llvm.objects`).
"""

from __future__ import annotations

import re

from llvmlite import ir

from warploom.llvm.lanes import Lanes, Value, mangled

PREFIX = "wl.round."

LLVM_ROUNDING = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
"""Arguments of `llvm.set.rounding` (LLVM language reference; C's FLT_ROUNDS)."""

_OPERANDS = {"fadd": 2, "fsub": 2, "fmul": 2, "fdiv": 2, "fma": 3, "fsqrt": 1}
_OF_INTEGERS = ("sitofp", "uitofp")
_CONVERSIONS = (*_OF_INTEGERS, "fptrunc")


def rounded(lanes: Lanes, op: str, mode: str, args: list[Value], result: ir.Type) -> Value:
    """Emits an operation on vectors, with a result of type `result`, in a rounding mode (rz, rm,
    rp), as a call of a function that `definition` defines: an arithmetic node of a term (`fadd`,
    `fma`, ...) or a conversion (`sitofp`, `uitofp`, `fptrunc`)."""
    suffix = _suffix(result)
    if op in _CONVERSIONS:
        suffix += "." + _suffix(args[0].type)
    name = f"{PREFIX}{op}.{mode}.{suffix}"
    return lanes.b.call(lanes.function(name, result, [a.type for a in args]), args)


def definition(name: str) -> str:
    """Returns the text of LLVM IR that defines a function which `rounded` calls, and declares the
    intrinsics in it; the name holds operation, mode and types. The function sets the rounding mode,
    performs the constrained operation, and sets the mode back to nearest. An integer 0 gives +0:
    LLVM's vector code of a conversion subtracts equal numbers there, which is -0 downwards."""
    op, mode, suffix = name.removeprefix(PREFIX).split(".", 2)
    result, _, source = suffix.partition(".")
    types = [_type_text(source)] if source else [_type_text(result)] * _OPERANDS[op]
    intrinsic = f"@llvm.experimental.constrained.{'sqrt' if op == 'fsqrt' else op}.{suffix}"
    arguments = ", ".join(f"{t} %a{i}" for i, t in enumerate(types))
    returned = _type_text(result)
    declared = ", ".join([*types, "metadata", "metadata"])
    return f"""
define {returned} @"{name}"({arguments}) noinline nounwind strictfp {{
  call void @llvm.set.rounding(i32 {LLVM_ROUNDING[mode]}) strictfp
  %r = call {returned} {intrinsic}({arguments}, metadata !"round.dynamic", metadata \
!"fpexcept.ignore") strictfp
  call void @llvm.set.rounding(i32 {LLVM_ROUNDING["rn"]}) strictfp
{_returned(op, types[0], returned)}
}}
declare {returned} {intrinsic}({declared})
declare void @llvm.set.rounding(i32)
"""


def _returned(op: str, source: str, result: str) -> str:
    """Returns the text that returns the result `%r` of the operand `%a0`: +0 for an integer 0."""
    if op not in _OF_INTEGERS:
        return f"  ret {result} %r"
    return f"""  %zero = icmp eq {source} %a0, zeroinitializer
  %positive = select <{source[1 : source.index(" ")]} x i1> %zero, {result} zeroinitializer, \
{result} %r
  ret {result} %positive"""


def _suffix(type: ir.Type) -> str:
    """Returns the suffix for a vector type in an intrinsic's name: `v32f32`; `v32half`, `v32i64`,
    as all elements but float and double retain their names. The type must be a vector."""
    vector: ir.VectorType = type  # type: ignore[assignment]
    return f"v{vector.count}{mangled(vector.element)}"


def _type_text(suffix: str) -> str:
    """Returns a vector type as IR spells it, from its `_suffix`: `v32f32` is `<32 x float>`. Only
    the elements f32 and f64 change; a suffix that is not of a vector fails an assertion."""
    match = re.fullmatch(r"v(\d+)(\w+)", suffix)
    assert match, suffix
    count, element = match.groups()
    return f"<{count} x { {'f32': 'float', 'f64': 'double'}.get(element, element) }>"
