"""Relations against sets of pairs, and the notation of models."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from warploom.core.errors import WarploomError
from warploom.memory_model.cat import parse_model
from warploom.memory_model.evaluation import Evaluation
from warploom.memory_model.executions import orders
from warploom.memory_model.relations import Relation

SIZE = 5
Pairs = set[tuple[int, int]]


def drawn(random: Random) -> Pairs:
    everything = [(i, j) for i in range(SIZE) for j in range(SIZE)]
    return set(random.sample(everything, random.randrange(9)))


def composed(first: Pairs, second: Pairs) -> Pairs:
    return {(a, d) for a, b in first for c, d in second if b == c}


def closed(pairs: Pairs) -> Pairs:
    while True:
        more = pairs | composed(pairs, pairs)
        if more == pairs:
            return pairs
        pairs = more


def of(pairs: Pairs) -> Relation:
    return Relation.of(SIZE, pairs)


@pytest.mark.parametrize("seed", range(20))
def test_relations_are_sets_of_pairs(seed: int) -> None:
    random = Random(seed)
    a, b = drawn(random), drawn(random)
    assert set((of(a) | of(b)).pairs) == a | b
    assert set((of(a) & of(b)).pairs) == a & b
    assert set((of(a) - of(b)).pairs) == a - b
    assert set(of(a).then(of(b)).pairs) == composed(a, b)
    assert set(of(a).inverse().pairs) == {(j, i) for i, j in a}
    assert set(of(a).closure().pairs) == closed(a)
    assert of(a).is_acyclic == all(i != j for i, j in closed(a))


@pytest.mark.parametrize("seed", range(10))
def test_orders_are_the_least_ones(seed: int) -> None:
    """Every order has what it must, relates what it must one way, and nothing more follows."""
    random = Random(seed)
    before = {(i, j) for i, j in drawn(random) if i < j}
    either = {(i, j) for i, j in drawn(random) if i < j}
    found = [set(order.pairs) for order in orders(SIZE, of(before), of(either))]
    wanted: list[Pairs] = []
    for ways in product((False, True), repeat=len(either)):
        turned = {(j, i) if way else (i, j) for (i, j), way in zip(either, ways, strict=True)}
        order = closed(before | turned)
        if all(i != j for i, j in order) and order not in wanted:
            wanted.append(order)
    assert sorted(map(sorted, found)) == sorted(map(sorted, wanted))


def violated(axiom: str) -> str:
    """Returns the axiom that does not hold where po is 0 -> 1 -> 2 and R is {0, 1}."""
    model = parse_model(f"M (* a model *) let twice = po; po {axiom}")
    given = {"po": Relation.of(3, {(0, 1), (1, 2)}), "R": 0b011}
    return Evaluation(model, 3, given).violated()


@pytest.mark.parametrize(
    ("axiom", "holds"),
    [
        ("empty twice as A", False),
        ("empty twice; po as A", True),
        ("empty [R]; twice; [R] as A", True),
        ("irreflexive po | po^-1 as A", True),
        ("irreflexive po; po^-1 as A", False),
        ("acyclic po+ as A", True),
        ("acyclic po* as A", False),
        ("acyclic po? as A", False),
        ("empty (R * R) & po \\ po as A", True),
        ("empty po | po & 0 as A", False),  # & before |
        ("empty twice & po; po as A", True),  # & before ;
        ("empty (_ * R) & po as A", False),
        ("empty [R \\ R] as A", True),
    ],
)
def test_operators(axiom: str, holds: bool) -> None:
    assert violated(axiom) == ("" if holds else "A")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("M let a = ", "where an operand is required"),
        ("M let a = (po", "where ')' is required"),
        ("M empty po", "where 'as' is required"),
        ("M wrong po as A", "no statement starts with"),
        ("M let a = po % po", "is not valid syntax"),
    ],
)
def test_what_is_no_model_is_refused(text: str, reason: str) -> None:
    with pytest.raises(WarploomError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        parse_model(text)


@pytest.mark.parametrize("axiom", ["empty nothing as A", "empty R as A", "empty R & po as A"])
def test_what_means_nothing_is_refused(axiom: str) -> None:
    with pytest.raises(WarploomError, match=r"model|set"):
        violated(axiom)
