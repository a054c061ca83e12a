"""Emits calls of helpers (`helpers.table`) in a kernel's code."""

from __future__ import annotations

from llvmlite import ir

from warploom.cost.device_rules import RULES
from warploom.helpers.symbols import PREFIX
from warploom.helpers.table import CHECKS
from warploom.llvm.lanes import I64, PTR, Lanes, Value


def call(lanes: Lanes, name: str, *args: Value) -> Value:
    """Emits the call of a helper or cost rule by name, with the types of its signature in
    `helpers.table`; returns its result, an i64.
    """
    if name in RULES:
        types: list[ir.Type] = [PTR, I64, I64, PTR]
    else:
        parameters = CHECKS[name].partition("(")[2].rstrip(")").split(",")
        types = [PTR if "*" in a else I64 for a in parameters]
    return lanes.b.call(lanes.function(PREFIX + name, I64, types), list(args))
