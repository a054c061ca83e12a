"""Programs of random operations of all instruction forms, on which both machines have to agree.

The content of a case has an opcode in each line: a program is made of those, so that a smaller
content is a smaller program. The options have the family and the seed of operands and data.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from form_families import FAMILIES

from fuzzing.cases import Case, Target
from fuzzing.targets.programs import check
from warploom.isa.spec import OpSpec, decode

LONGEST = 12
"""The most forms in one program."""


def generate(seed: int) -> Case:
    """Returns the opcodes of a seed. Families come in turn, and in each the forms in a random order
    until all have occurred, then in another one."""
    names = sorted(FAMILIES)
    number, which = divmod(seed, len(names))
    family = FAMILIES[names[which]]
    programs = -(-len(family.specs) // LONGEST)
    lap, part = divmod(number, programs)
    order = random.Random(lap).sample(family.specs, len(family.specs))
    rng = random.Random(seed)
    opcodes = [family.draw(spec, rng).text for spec in order[part::programs]]
    options = {"family": names[which], "seed": seed}
    return Case("forms", "\n".join(opcodes), options, "agree_forms")


def executed(seeds: Iterable[int]) -> set[OpSpec]:
    """Returns the forms in the programs of seeds."""
    return {decode(opcode).spec for seed in seeds for opcode in str(generate(seed).content).split()}


TARGETS = (Target("forms", generate, check, weight=4.0, seconds=600),)
EVERY = {spec for family in FAMILIES.values() for spec in family.specs}
"""The forms of all families."""
