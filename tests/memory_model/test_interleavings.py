"""Random litmus tests: the model "sc" against all interleavings, and "ptx" allows each of them."""

from __future__ import annotations

from random import Random

import pytest

from warploom.memory_model.cat import named_model
from warploom.memory_model.language import LitmusTest, parse_litmus
from warploom.memory_model.search import outcomes

PLACES = ("x", "y")


def drawn(random: Random) -> list[list[str]]:
    """Returns the instructions of some threads; every load has a register of its own."""
    threads: list[list[str]] = []
    for _ in range(random.choice((2, 2, 3))):
        made: list[str] = []
        for number in range(random.randrange(1, 4)):
            place, value = random.choice(PLACES), random.randrange(1, 4)
            order = random.choice(("weak", "relaxed.gpu", "relaxed.cta"))
            made.append(
                random.choice(
                    (
                        f"st.{order} {place}, {value}",
                        f"ld.{order} r{number}, {place}",
                        f"atom.relaxed.gpu.add r{number}, {place}, {value}",
                        f"atom.acq_rel.cta.exch r{number}, {place}, {value}",
                        f"atom.relaxed.gpu.cas r{number}, {place}, 0, {value}",
                        "fence.acq_rel.gpu",
                    )
                )
            )
        threads.append(made)
    return threads


def written(threads: list[list[str]], random: Random) -> LitmusTest:
    height = max(map(len, threads))
    rows = [[t[i] if i < len(t) else "" for t in threads] for i in range(height)]
    heads = [f"P{i}@cta {random.randrange(2)},gpu 0" for i in range(len(threads))]
    table = "\n".join(" | ".join(row) + " ;" for row in [heads, *rows])
    seen = [f"P{t}:r{i} == 0" for t in range(len(threads)) for i in range(3)]
    asked = " /\\ ".join([*seen, *(f"{place} == 0" for place in PLACES)])
    return parse_litmus(f"PTX drawn\n{{ }}\n{table}\nexists ({asked})")


def interleaved(threads: list[list[str]]) -> set[tuple[int, ...]]:
    """Returns the final states of all interleavings, step by step."""
    found: set[tuple[int, ...]] = set()
    registers = [f"{t}r{i}" for t in range(len(threads)) for i in range(3)]
    pending = [((0,) * len(threads), dict.fromkeys((*registers, *PLACES), 0))]
    while pending:
        at, state = pending.pop()
        going = [t for t, place in enumerate(at) if place < len(threads[t])]
        if not going:
            found.add(tuple(state.values()))
        for thread in going:
            after = stepped(threads[thread][at[thread]], thread, state)
            pending.append((tuple(p + (t == thread) for t, p in enumerate(at)), after))
    return found


def stepped(text: str, thread: int, state: dict[str, int]) -> dict[str, int]:
    opcode, _, rest = text.partition(" ")
    operands, after = [part.strip() for part in rest.split(",")], dict(state)
    if opcode.startswith("st"):
        after[operands[0]] = int(operands[1])
    elif opcode.startswith("ld"):
        after[thread_register(thread, operands[0])] = state[operands[1]]
    elif opcode.startswith("atom"):
        place, given = operands[1], [int(each) for each in operands[2:]]
        old = after[thread_register(thread, operands[0])] = state[place]
        op = opcode.rpartition(".")[2]
        new = old + given[0] if op == "add" else given[0]
        if op == "cas":
            new = given[1] if old == given[0] else old
        after[place] = new
    return after


def thread_register(thread: int, name: str) -> str:
    return f"{thread}{name}"


@pytest.mark.parametrize("part", range(4))
def test_models_and_interleavings_agree(part: int) -> None:
    for seed in range(part * 40, part * 40 + 40):
        random = Random(seed)
        threads = drawn(random)
        test = written(threads, random)
        wanted = interleaved(threads)
        assert set(outcomes(test.program, named_model("sc")).allowed) == wanted, threads
        assert wanted <= set(outcomes(test.program, named_model("ptx")).allowed), threads
