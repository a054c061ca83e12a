"""Holds the scope of an instruction for the verifier: the names that exist, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warploom.core.errors import PtxSyntaxError
from warploom.core.source import Span
from warploom.isa.instruction import Instruction, Symbol, Vector
from warploom.isa.kinds import OpKind
from warploom.ptx.module import Function, Label, Module, Prototype, Targets, Variable


@dataclass(frozen=True)
class Scope:
    """One function of a module, its names by what they are.

    `variables` holds the module's and the function's, parameters among them; `inputs` are the
    parameters that a function may only read, and `readable` its `.param` variables that have a
    value: parameters, results, and those in which its calls return results. `address_bits` are
    those of the module's addresses.
    """

    function: Function
    variables: dict[str, Variable]
    functions: dict[str, Function]
    labels: frozenset[str]
    inputs: frozenset[str]
    readable: frozenset[str]
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
            frozenset(
                (*_received(body), *(v.name for v in (*function.parameters, *function.returns)))
            ),
            {s.name: s for s in body if isinstance(s, Targets | Prototype)},
            module.address_size,
        )

    def error(self, message: str, span: Span) -> PtxSyntaxError:
        """Return the error for a rule of the language that is broken at `span`."""
        return PtxSyntaxError(message, span)


def _received(body: Iterable[object]) -> Iterator[str]:
    """Yields the names of the `.param` variables in which the calls of a body return results."""
    for statement in body:
        if isinstance(statement, Instruction) and statement.operation.kind is OpKind.CALL:
            results = statement.operands[0]
            assert isinstance(results, Vector)
            yield from (each.name for each in results.elements if isinstance(each, Symbol))
