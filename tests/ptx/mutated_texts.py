"""Draws mutations of PTX that compilers made: one token of one line is another one, or is gone."""

from __future__ import annotations

import random
import re

INSTRUCTION = re.compile(r"\s*(@!?%p\d+\s+)?([a-z]\w*(?:\.[\w:]+)*)\s+(.*);\s*$")
BETWEEN_OPERANDS = re.compile(r",\s*(?![^\[{(]*[\]})])")
TYPES = tuple(
    re.findall(r"\w+", "b8 u8 s16 u16 b16 b32 u32 s32 f32 b64 u64 s64 f64 f16 f16x2 bf16 pred b128")
)
OTHERS = """rn rz rzi rni sat ftz lo hi wide global shared local param const volatile relaxed gpu
acquire release v2 v4 cc approx full nc sync uni to lt eq ltu and or add cas exch min cta sys
aligned idx down ca cg relu NaN noftz"""
MODIFIERS = (*TYPES, *OTHERS.split())
OPERANDS = (
    *("1", "-1", "1.5", "0f3F800000", "300", "[%rd1]", "%r1", "{%r1, %r2}", "_", "WARP_SZ"),
    *("%p1|%p2", "%tid.x", "%tid", "%clock64", "%laneid"),
)
GUARDS = ("@%r1", "@%p99", "@!%p1", "@!!%p1", "@1", "@%f1")
NUMBERS = ("0", "3", "7", "1025", "65537", "4294967296")


def mutated(text: str, rng: random.Random) -> tuple[str, str]:
    """Returns a text with one change, and the line that is another one now."""
    lines = text.splitlines()
    places = [n for n, line in enumerate(lines) if INSTRUCTION.match(line)]
    if rng.random() < 0.15:
        places = [n for n, line in enumerate(lines) if line.strip().startswith((".", "}"))]
        place = rng.choice(places)
        lines[place] = _directive(lines[place], rng)
    else:
        place = rng.choice(places)
        lines[place] = _instruction(lines[place], sorted(set(re.findall(r"%\w+", text))), rng)
    return "\n".join(lines) + "\n", lines[place]


def _directive(line: str, rng: random.Random) -> str:
    changes = (
        "",
        f"{line}\n{line}",
        re.sub(r"\d+", rng.choice(NUMBERS), line, count=1),
        re.sub(r"\.\w+(?=\s)", f".{rng.choice(MODIFIERS)}", line, count=1),
    )
    return rng.choice(changes)


def _instruction(line: str, registers: list[str], rng: random.Random) -> str:
    """Returns an instruction with another modifier, operand or guard."""
    found = INSTRUCTION.match(line)
    assert found is not None
    guard, (name, *modifiers) = found[1] or "", found[2].split(".")
    operands = BETWEEN_OPERANDS.split(found[3])
    match rng.randrange(8):
        case 0 | 1 if modifiers:
            modifiers[rng.randrange(len(modifiers))] = rng.choice(MODIFIERS)
        case 2 if modifiers:
            modifiers.pop(rng.randrange(len(modifiers)))
        case 3:
            modifiers.insert(rng.randrange(len(modifiers) + 1), rng.choice(MODIFIERS))
        case 4:
            place = rng.randrange(len(operands))
            operands[place] = re.sub(r"%\w+", rng.choice(registers), operands[place], count=1)
        case 5:
            operands[rng.randrange(len(operands))] = rng.choice(OPERANDS)
        case 6:
            place = rng.randrange(len(operands))
            operands[place : place + 1] = rng.choice(([], [operands[place]] * 2))
        case _:
            guard = rng.choice(GUARDS) + " "
    return f"{guard}{'.'.join((name, *modifiers))} {', '.join(operands)};"
