"""Arithmetic in the rounding modes that are not the processor's usual one.

Each operation becomes a small function that sets the processor's rounding mode, computes with
LLVM's constrained intrinsics, and sets nearest-even again. LLVM may neither inline nor reorder
it, for it is strict about the floating-point environment; so the rest of the code stays free.
A function's name says all about it; `definition` turns it into LLVM IR when a module is linked.
"""

from __future__ import annotations

import re

from llvmlite import ir

from warploom.llvm.lanes import Lanes, Value, mangled

PREFIX = "wl.round."

LLVM_ROUNDING = {"rz": 0, "rn": 1, "rp": 2, "rm": 3}
"""Arguments of `llvm.set.rounding` (LLVM language reference; C's FLT_ROUNDS)."""

_OPERANDS = {"fadd": 2, "fsub": 2, "fmul": 2, "fdiv": 2, "fma": 3, "fsqrt": 1}
_CONVERSIONS = ("sitofp", "uitofp", "fptrunc")


def rounded(lanes: Lanes, op: str, mode: str, args: list[Value], result: ir.Type) -> Value:
    """`op` on vectors, rounded in `mode`: the arithmetic nodes, or sitofp, uitofp, fptrunc."""
    suffix = _suffix(result)
    if op in _CONVERSIONS:
        suffix += "." + _suffix(args[0].type)
    name = f"{PREFIX}{op}.{mode}.{suffix}"
    return lanes.b.call(lanes.function(name, result, [a.type for a in args]), args)


def definition(name: str) -> str:
    """Return the LLVM IR of the function that `rounded` calls by that name."""
    op, mode, suffix = name.removeprefix(PREFIX).split(".", 2)
    result, _, source = suffix.partition(".")
    types = [_spelled(source)] if source else [_spelled(result)] * _OPERANDS[op]
    intrinsic = f"@llvm.experimental.constrained.{'sqrt' if op == 'fsqrt' else op}.{suffix}"
    given = ", ".join(f"{t} %a{i}" for i, t in enumerate(types))
    returned = _spelled(result)
    declared = ", ".join([*types, "metadata", "metadata"])
    return f"""
define {returned} @"{name}"({given}) noinline nounwind strictfp {{
  call void @llvm.set.rounding(i32 {LLVM_ROUNDING[mode]}) strictfp
  %r = call {returned} {intrinsic}({given}, metadata !"round.dynamic", metadata \
!"fpexcept.ignore") strictfp
  call void @llvm.set.rounding(i32 {LLVM_ROUNDING["rn"]}) strictfp
  ret {returned} %r
}}
declare {returned} {intrinsic}({declared})
declare void @llvm.set.rounding(i32)
"""


def _suffix(type: ir.Type) -> str:
    vector: ir.VectorType = type  # type: ignore[assignment]
    return f"v{vector.count}{mangled(vector.element)}"


def _spelled(suffix: str) -> str:
    """`v32f32` as IR spells it: `<32 x float>`."""
    found = re.fullmatch(r"v(\d+)(\w+)", suffix)
    assert found, suffix
    count, element = found.groups()
    return f"<{count} x { {'f32': 'float', 'f64': 'double'}.get(element, element) }>"
