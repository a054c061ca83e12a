"""Programs of random operations of all instruction forms, on which both machines have to agree.

The content of a case has an opcode in each line: a program is made of those, so that a smaller
content is a smaller program. The options have the family and the seed of operands and data.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache

from form_families import FAMILIES

from fuzzing.cases import Case, Target
from fuzzing.targets.programs import check
from warploom.isa.spec import OpSpec, decode

LONGEST = 12
"""The most forms in one program."""


def generate(seed: int) -> Case:
    """Returns the opcodes of a seed. As many seeds as PROGRAMS, one after the other, have each form
    once."""
    lap, number = divmod(seed, PROGRAMS)
    name, specs = _programs(lap)[number]
    rng = random.Random(seed)
    opcodes = [FAMILIES[name].draw(spec, rng).text for spec in specs]
    return Case("forms", "\n".join(opcodes), {"family": name, "seed": seed}, "agree_forms")


@cache
def _programs(lap: int) -> list[tuple[str, list[OpSpec]]]:
    """Returns programs in which each form occurs once, in a random order: each one's family and
    forms."""
    rng = random.Random(lap)
    programs = list[tuple[str, list[OpSpec]]]()
    for name, family in sorted(FAMILIES.items()):
        specs = rng.sample(family.specs, len(family.specs))
        starts = range(0, len(specs), LONGEST)
        programs += [(name, specs[start : start + LONGEST]) for start in starts]
    return rng.sample(programs, len(programs))


def opcodes(seed: int) -> list[str]:
    """Returns the opcodes of a seed's program."""
    return str(generate(seed).content).split()


def executed(seeds: Iterable[int]) -> set[OpSpec]:
    """Returns the forms in the programs of seeds."""
    return {decode(opcode).spec for seed in seeds for opcode in opcodes(seed)}


PROGRAMS = len(_programs(0))
TARGETS = (Target("forms", generate, check, weight=4.0, seconds=600),)
EVERY = {spec for family in FAMILIES.values() for spec in family.specs}
"""The forms of all families."""
