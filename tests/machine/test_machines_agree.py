"""Both machines, on random kernels: the same registers, memory, counts, and the same errors."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_programs import THREAD_BYTES, kernels
from random_texels import HEIGHT, WIDTH, textures

from warploom.analysis.build import build
from warploom.core.errors import DeadlockError, InstructionLimit, WarploomError
from warploom.machine.compiled import CompiledEngine
from warploom.machine.image import Image
from warploom.machine.launch import POLICIES, Launch, Schedule
from warploom.machine.memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.tally import COLUMNS, Tally
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify
from warploom.rules.fields import EXAMPLE_MASK

LIMIT = 20_000
EDGES = np.array(
    [0, 1, 0x3F800000, 0x7F800000, 0x7FC00001, 0x80000000, 0xFFFFFFFF, 0x3FF0000000000000,
     0x7FF0000000000000, 0x7FF8000000000001, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF],
    np.uint64,
)  # fmt: skip


def outcome(
    text: str,
    launch_shape: tuple[int, int],
    seed: int,
    schedule: Schedule,
    engine: object,
    warp_size: int = 32,
) -> Any:
    """What a run leaves: the error, or memory and counts."""
    module = parse(text)
    verify(module)
    program = build(module, "k")
    memory = DeviceMemory(1 << 30)
    image = Image(module, memory)
    blocks, threads = launch_shape
    size = blocks * threads * THREAD_BYTES
    buffer = memory.allocate(size, "buffer")
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 1 << 64, size // 8, np.uint64)
    start = np.where(rng.random(len(start)) < 0.4, rng.choice(EDGES, len(start)), start)
    memory.write(buffer.address, start.tobytes())
    surface = textures(memory, rng)
    launch = Launch(
        (blocks, 1, 1),
        (threads, 1, 1),
        struct.pack("<Q", buffer.address),
        image.addresses(program.globals),
        max_instructions=LIMIT,
        schedule=schedule,
        warp_size=warp_size,
    )
    try:
        tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
    except DeadlockError as error:
        return [*error.groups]
    except WarploomError as error:
        return type(error)
    cells = memory.read(image.addresses(("cells",))[0], 64)
    texels = memory.read(surface, 4 * WIDTH * HEIGHT)
    return memory.read(buffer.address, size), cells, texels, counts(tally)


def never_ends(compiled: Any, reference: Any) -> bool:
    """Whether compiled code has proven that lanes go round and round, and the reference machine has
    run until the limit: it tells states apart by registers that nobody reads any more, too."""
    spins = isinstance(compiled, list) and any("change of memory" in g.waits_for for g in compiled)
    return spins and reference is InstructionLimit


def counts(tally: Tally) -> dict[str, object]:
    """All counts; of the examples of costly accesses their costs and lanes, for the addresses are
    those of one memory."""
    found: dict[str, object] = {name: getattr(tally, name).tolist() for name in COLUMNS}
    return found | {"records": tally.records[:, : EXAMPLE_MASK + 1].tolist()}


def schedules() -> st.SearchStrategy[Schedule]:
    """Both control models, every policy."""
    return st.builds(
        Schedule,
        policy=st.sampled_from(POLICIES),
        seed=st.integers(0, 1 << 16),
        independent=st.booleans(),
        resident_blocks=st.integers(1, 3),
    )


def agree_on_kernels(examples: int, shapes: list[tuple[int, int]]) -> None:
    """Both machines do the same with random kernels, in as many blocks and threads as drawn."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        text=kernels(),
        shape=st.sampled_from(shapes),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
    )
    def agree(text: str, shape: tuple[int, int], seed: int, schedule: Schedule) -> None:
        expected = outcome(text, shape, seed, schedule, ReferenceEngine())
        found = outcome(text, shape, seed, schedule, CompiledEngine())
        assert found == expected or never_ends(found, expected)

    agree()


def test_machines_agree(random_examples: int) -> None:
    agree_on_kernels(random_examples, [(1, 32), (1, 20), (2, 40), (1, 96)])


def test_wavefronts_do_what_warps_do(random_examples: int) -> None:
    """Kernels whose threads do nothing for each other leave the same memory, however many lanes go
    together; what they cost differs."""

    @settings(
        max_examples=random_examples // 2,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(
        text=kernels(alone=True),
        shape=st.sampled_from([(1, 64), (2, 100)]),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
    )
    def agree(text: str, shape: tuple[int, int], seed: int, schedule: Schedule) -> None:
        narrow = outcome(text, shape, seed, schedule, ReferenceEngine())
        wide = outcome(text, shape, seed, schedule, ReferenceEngine(), 64)
        # Which of several errors comes first is a matter of order.
        assume(isinstance(narrow, tuple) and isinstance(wide, tuple))
        assert wide[0] == narrow[0]

    agree()
