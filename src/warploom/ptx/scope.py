"""Holds the scope of an instruction for the verifier: the names that exist, and its errors."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Span
from warploom.ptx.module import Function, Label, Module, Prototype, Targets, Variable


@dataclass(frozen=True)
class Scope:
    """One function of a module, its names by what they are.

    `variables` holds the module's and the function's, parameters among them; `inputs` are the
    parameters that a function may only read. `address_bits` are those of the module's addresses.
    """

    function: Function
    variables: dict[str, Variable]
    functions: dict[str, Function]
    labels: frozenset[str]
    inputs: frozenset[str]
    targets: dict[str, Targets | Prototype]
    address_bits: int

    @classmethod
    def of(cls, module: Module, function: Function) -> Scope:
        body = function.body or ()
        own = (
            *function.parameters,
            *function.returns,
            *(s for s in body if isinstance(s, Variable)),
        )
        return cls(
            function,
            {v.name: v for v in (*module.variables, *own)},
            {f.name: f for f in module.functions},
            frozenset(s.name for s in body if isinstance(s, Label)),
            frozenset(p.name for p in function.parameters),
            {s.name: s for s in body if isinstance(s, Targets | Prototype)},
            module.address_size,
        )

    def error(self, message: str, span: Span) -> PtxSyntaxError:
        """Return the error for a rule of the language that is broken at `span`."""
        return PtxSyntaxError(message, span)
