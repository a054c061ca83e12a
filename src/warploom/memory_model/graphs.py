"""Executions as text: what each thread does, whom its reads read from, the orders of writes."""

from __future__ import annotations

from itertools import pairwise
from string import ascii_lowercase

from warploom.memory_model.events import Kind
from warploom.memory_model.executions import INITIAL
from warploom.memory_model.relations import Relation
from warploom.memory_model.search import Program, Witness


def letter(number: int) -> str:
    """Returns the name of an event: a, b, ..., z, aa, ab, ..."""
    first, last = divmod(number, len(ascii_lowercase))
    return (letter(first - 1) if first else "") + ascii_lowercase[last]


def execution_text(program: Program, witness: Witness) -> list[str]:
    """Returns the lines that show an execution."""
    events = witness.combination.events
    names = _names(witness)
    lines: list[str] = []
    for number, thread in enumerate(program.threads):
        own = [i for i, (of, _) in enumerate(events) if of == number]
        if own:
            lines.append(f"{thread.name}:")
            lines += [f"  {_event_text(witness, names, i)}" for i in own]
    return lines + _order_lines(witness, names)


def _names(witness: Witness) -> dict[int, str]:
    """Returns what events are called: those of threads by letters."""
    events = witness.combination.events
    own = [i for i, (thread, _) in enumerate(events) if thread != INITIAL]
    named = {i: letter(place) for place, i in enumerate(own)}
    initial = {i: "the initial value" for i in range(len(events)) if i not in named}
    return named | initial


def _event_text(witness: Witness, names: dict[int, str], number: int) -> str:
    """Returns an event with its value."""
    combination = witness.combination
    thread, event = combination.events[number]
    text = f"{names[number]}: {event.text}"
    if event.kind is Kind.READ:
        source = witness.rf[number]
        writer, write = combination.events[source]
        value = combination.value(writer, write.value, witness.rf)
        text = f"{text}   reads {value}, {_from(names, source)}"
    elif event.kind is Kind.WRITE:
        text = f"{text}   writes {combination.value(thread, event.value, witness.rf)}"
    return f"{text}   ({event.line})" if event.line else text


def _from(names: dict[int, str], source: int) -> str:
    name = names[source]
    return name if name.startswith("the") else f"of {name}"


def _order_lines(witness: Witness, names: dict[int, str]) -> list[str]:
    """Returns the coherence order of each location with two or more writes, and of the fences."""
    lines: list[str] = []
    for title, order in (("coherence order", witness.co), ("fence-sc order", witness.fence_sc)):
        pairs = [
            f"{names[i]} before {names[j]}"
            for i, j in _covering(order).pairs
            if witness.combination.events[i][0] != INITIAL
        ]
        if pairs:
            lines.append(f"{title}: {', '.join(pairs)}")
    return lines


def _covering(order: Relation) -> Relation:
    """Returns the pairs of an order between which nothing stands."""
    return order - order.then(order)


def dot(program: Program, witness: Witness, title: str) -> str:
    """Returns an execution as a graph in Graphviz's notation."""
    combination, names = witness.combination, _names(witness)
    lines = ["digraph execution {", "  rankdir=TB; node [shape=box, fontname=monospace];"]
    lines.append(f"  label={_quoted(title)};")
    for number, thread in enumerate(program.threads):
        own = [i for i, (of, _) in enumerate(combination.events) if of == number]
        if not own:
            continue
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(thread.name)};")
        lines += [f"    e{i} [label={_quoted(_event_text(witness, names, i))}];" for i in own]
        lines += [f"    e{i} -> e{j} [label=po];" for i, j in pairwise(own)]
        lines.append("  }")
    edges = [(write, read, "rf", "red") for read, write in witness.rf.items()]
    edges += [(i, j, "co", "blue") for i, j in _covering(witness.co).pairs]
    edges += [(i, j, "fence-sc", "darkgreen") for i, j in _covering(witness.fence_sc).pairs]
    for i, j, label, colour in edges:
        if combination.events[i][0] != INITIAL:
            lines.append(f"  e{i} -> e{j} [label={_quoted(label)}, color={colour}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
