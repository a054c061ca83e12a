"""Evaluates a memory model in one execution."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.core.errors import WarploomError
from warploom.memory_model.cat import Model, Node
from warploom.memory_model.relations import Relation, identity, product

Value = int | Relation
"""A set of events, as bits, or a relation."""


class Evaluation:
    """The values of a model's names in one execution."""

    def __init__(self, model: Model, size: int, given: Mapping[str, Value]) -> None:
        self._model, self._size, self._given = model, size, dict(given)
        self._known: dict[str, Value] = {}

    def given(self, **changed: Relation) -> Evaluation:
        """Returns the evaluation where some given relations are others."""
        other = Evaluation(self._model, self._size, {**self._given, **_dashed(changed)})
        names = _dashed(changed).keys()
        needs = self._model.needs
        other._known = {
            name: value for name, value in self._known.items() if not names & needs[name]
        }
        return other

    def relation(self, name: str) -> Relation:
        """Returns the relation of a name. Raises WarploomError where the model has none."""
        value = self._value(name)
        if isinstance(value, int):
            raise WarploomError(f"the model {self._model.name} uses the set {name} as a relation")
        return value

    def violated(self) -> str:
        """Returns the name of the first axiom that does not hold, or nothing."""
        for name, (check, node) in self._model.axioms.items():
            found = self._relation(node)
            holds = {
                "empty": lambda r=found: r.is_empty,
                "irreflexive": lambda r=found: r.is_irreflexive,
                "acyclic": lambda r=found: r.is_acyclic,
            }[check]
            if not holds():
                return name
        return ""

    def _value(self, name: str) -> Value:
        if name in self._known:
            return self._known[name]
        if name in self._given:
            return self._given[name]
        node = self._model.definitions.get(name)
        if node is None:
            raise WarploomError(f"the model {self._model.name} uses {name}, which is not defined")
        value = self._known[name] = self._of(node)
        return value

    def _relation(self, node: Node) -> Relation:
        value = self._of(node)
        if isinstance(value, int):
            raise WarploomError(f"the model {self._model.name} uses a set as a relation")
        return value

    def _set(self, node: Node) -> int:
        value = self._of(node)
        if isinstance(value, Relation):
            raise WarploomError(f"the model {self._model.name} uses a relation as a set")
        return value

    def _of(self, node: Node) -> Value:
        size = self._size
        match node.op:
            case "name":
                return self._value(node.name)
            case "0":
                return Relation((0,) * size)
            case "_":
                return (1 << size) - 1
            case "[":
                return identity(size, self._set(node.args[0]))
            case "**":
                return product(size, self._set(node.args[0]), self._set(node.args[1]))
            case ";":
                return self._relation(node.args[0]).then(self._relation(node.args[1]))
            case "|" | "&" | "\\":
                return _combined(node.op, self._of(node.args[0]), self._of(node.args[1]))
            case _:
                return self._unary(node)

    def _unary(self, node: Node) -> Relation:
        operand = self._relation(node.args[0])
        match node.op:
            case "^-1":
                return operand.inverse()
            case "+":
                return operand.closure()
            case "?":
                return operand.with_identity()
            case _:
                return operand.closure().with_identity()


def _dashed(named: Mapping[str, Relation]) -> dict[str, Relation]:
    return {name.replace("_", "-"): value for name, value in named.items()}


def _combined(op: str, first: Value, second: Value) -> Value:
    """Returns a union, an intersection or a difference of two sets or two relations."""
    if isinstance(first, int) and isinstance(second, int):
        return {"|": first | second, "&": first & second, "\\": first & ~second}[op]
    if isinstance(first, Relation) and isinstance(second, Relation):
        return first | second if op == "|" else first & second if op == "&" else first - second
    raise WarploomError(
        f"in a model, the operator {op} requires two sets or two relations, not one of each"
    )
