"""Enumerates all outcomes of a small launch that the memory model of PTX allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from warploom.core.errors import LaunchError, WarploomError
from warploom.core.input_files import read_text
from warploom.core.options import checked
from warploom.host.launch_options import LaunchOptions
from warploom.host.launcher import Launcher
from warploom.host.option_types import Positive
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.memory_model.accesses import Memory
from warploom.memory_model.cat import Model, named_model, parse_model
from warploom.memory_model.events import Kind
from warploom.memory_model.graphs import dot, execution_text
from warploom.memory_model.kernels import KernelThread
from warploom.memory_model.language import LitmusTest, parse_litmus
from warploom.memory_model.paths import paths_of
from warploom.memory_model.search import (
    ROUNDS,
    Observed,
    Outcomes,
    Program,
    Thread,
    Witness,
    outcomes,
)
from warploom.program.program import Program as Kernel

MODELS = ("ptx", "sc")
MOST_THREADS = 128
"""So many threads of a launch are explored at most."""


@dataclass(frozen=True, slots=True)
class WeakOutcome:
    """One final state: the values of what was observed, by name; `interleaved`: an interleaving of
    the threads' instructions gives it too. `graph` shows an execution that leads to it, a line for
    each event; `dot` the same for Graphviz."""

    values: Mapping[str, int]
    interleaved: bool
    graph: tuple[str, ...]
    dot: str


@dataclass(frozen=True, slots=True)
class WeakOutcomes:
    """All outcomes that a model allows. `answer` is that of the question of a litmus test, None
    where nothing was asked. `longer`: loops may go round more often than was looked at; `stuck`: in
    some executions threads wait at a barrier for ever."""

    name: str
    outcomes: tuple[WeakOutcome, ...]
    answer: bool | None
    longer: bool
    stuck: bool

    @property
    def weak(self) -> tuple[WeakOutcome, ...]:
        """Returns the outcomes that no interleaving gives."""
        return tuple(one for one in self.outcomes if not one.interleaved)


def find_model(name: str) -> Model:
    """Returns the model of a name ("ptx", "sc") or a file of cat. Raises WarploomError."""
    if name in MODELS:
        return named_model(name)
    file = Path(name)
    if not file.is_file():
        raise WarploomError(f"there is no model {name}: use {', '.join(MODELS)} or a .cat file")
    return parse_model(read_text(file))


@checked("litmus(...)")
def litmus(
    launcher: Launcher,
    *args: Any,
    model: str = "ptx",
    rounds: Positive = ROUNDS,
    **options: Unpack[LaunchOptions],
) -> WeakOutcomes:
    """Returns all outcomes of a small launch that a memory model allows: the final contents of the
    global memory that it writes.

    The arguments are those of a launch; their buffers stay as they are. `model` is "ptx" (PTX ISA,
    "Memory Consistency Model"), "sc" (interleavings) or a file of cat; paths come to any block of
    instructions at most `rounds` times. Raises LaunchError for what does not fit, WarploomError for
    instructions that are not explored.
    """
    program, wanted = (
        launcher.examined(partial(_program, rounds), *args, **options),
        find_model(model),
    )
    return _weak_outcomes(program, outcomes(program, wanted, rounds), rounds)


def litmus_test(text: str, model: str = "ptx", rounds: int = ROUNDS) -> WeakOutcomes:
    """Returns all outcomes of a litmus test in the notation of herd
    (`warploom.memory_model.language`), and the answer to its question. Raises WarploomError where
    it is none."""
    test = parse_litmus(text)
    found = outcomes(test.program, find_model(model), rounds)
    return _weak_outcomes(test.program, found, rounds, test)


def _weak_outcomes(
    program: Program, found: Outcomes, rounds: int, test: LitmusTest | None = None
) -> WeakOutcomes:
    labels = [one.label for one in program.observed]
    interleaved = outcomes(program, named_model("sc"), rounds).allowed
    allowed = tuple(
        _outcome(program, dict(zip(labels, state, strict=True)), witness, state in interleaved)
        for state, witness in sorted(found.allowed.items(), key=lambda item: item[0])
    )
    answer = None
    if test is not None:
        answer = test.question.answer([one.values for one in allowed])
    return WeakOutcomes(program.name, allowed, answer, found.longer, found.stuck)


def _outcome(
    program: Program, values: dict[str, int], witness: Witness, interleaved: bool
) -> WeakOutcome:
    title = ", ".join(f"{label} = {value}" for label, value in values.items())
    graph = tuple(execution_text(program, witness))
    return WeakOutcome(values, interleaved, graph, dot(program, witness, title))


def _program(rounds: int, kernel: Kernel, launch: Launch, memory: DeviceMemory) -> Program:
    """Returns the threads of a launch as a program. Raises LaunchError where there are too many."""
    count = launch.blocks * launch.threads_per_block
    if count > MOST_THREADS:
        raise LaunchError(
            f"{kernel.title} has {count} threads, but the search supports at most {MOST_THREADS}. "
            "Launch fewer threads: two or three are enough to show which outcomes the model allows."
        )
    named = Memory(kernel, memory)
    threads = [
        KernelThread(kernel, launch, named, block, thread)
        for block in range(launch.blocks)
        for thread in range(launch.threads_per_block)
    ]
    written: dict[str, None] = {}
    for thread in threads:
        for path in paths_of(thread.run, rounds)[0]:
            for event in path.events:
                if event.kind is Kind.WRITE and event.place is not None:
                    written[event.place.physical] = None
    observed = tuple(Observed(name, name) for name in sorted(written) if name not in named.shared)
    program_threads = tuple(Thread(one.name, one.coordinates, one.run) for one in threads)
    return Program(kernel.title, program_threads, named.initial, observed)
