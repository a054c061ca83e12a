"""Holds what each pass of the compiler does to each kernel, judges it and writes it as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from warploom.ir.options import Pass

LIMIT = 1.05
"""The ratio of instructions beyond which a pass costs, or without it gains."""

FEWEST = 3
"""A pass has to gain on so many kernels."""


@dataclass(frozen=True)
class Cell:
    """Holds the figures of one kernel, first with a pass and then without it.

    `instructions` are those of the processor in machine code of one launch, `seconds` processor
    time of compiling. `changes` says whether the pass changes the LLVM IR of the kernel; where it
    does not, `instructions` are not counted.
    """

    name: Pass
    kernel: str
    changes: bool
    seconds: tuple[float, float]
    instructions: tuple[int, int] = (0, 0)

    @property
    def cost(self) -> float:
        """Gives the instructions with the pass over those without it."""
        with_pass, without = self.instructions
        return with_pass / without if self.changes else 1.0

    @property
    def compile_cost(self) -> float:
        """Gives the compile time with the pass over that without it."""
        with_pass, without = self.seconds
        return with_pass / without


def by_pass(cells: Sequence[Cell]) -> Mapping[Pass, list[Cell]]:
    """Returns the cells of each pass that has some, from the most useful kernel to the least."""
    found = defaultdict[Pass, list[Cell]](list)
    for cell in sorted(cells, key=lambda cell: cell.cost):
        found[cell.name].append(cell)
    return {name: found[name] for name in Pass if name in found}


def gaining(cells: Sequence[Cell]) -> list[Cell]:
    """Returns the cells that take over LIMIT times the instructions without the pass."""
    return [cell for cell in cells if 1 / cell.cost > LIMIT]


def losing(cells: Sequence[Cell]) -> list[Cell]:
    """Returns the cells that take over LIMIT times the instructions with the pass."""
    return [cell for cell in cells if cell.cost > LIMIT]


def costly(cells: Sequence[Cell]) -> list[str]:
    """Returns a sentence for each pass that costs over LIMIT on a kernel, or that gains on fewer
    than FEWEST."""
    found: list[str] = []
    for name, own in by_pass(cells).items():
        if losing(own):
            worst = own[-1]
            found.append(f"{name} costs {worst.cost:.2f} on {worst.kernel}")
        if (gains := len(gaining(own))) < FEWEST:
            found.append(f"{name} gains on {gains} of {len(own)} kernels")
    return found


HEADER = (
    f"{'pass':18}{'changes':>8}{'mean':>6}{'gains':>6}{'costs':>6}{'compile':>8}  "
    "ratio of instructions: the three lowest | the highest | highest ratio of compile times"
)


def table(cells: Sequence[Cell]) -> str:
    """Writes a line for each pass."""
    return "\n".join([HEADER, *(_row(name, own) for name, own in by_pass(cells).items())])


def _row(name: Pass, cells: Sequence[Cell]) -> str:
    changed = [cell for cell in cells if cell.changes]
    mean = f"{geometric_mean(cell.cost for cell in changed):.2f}" if changed else "-"
    compile_mean = geometric_mean(cell.compile_cost for cell in cells)
    slowest = max(cells, key=lambda cell: cell.compile_cost)
    named = [f"{cell.kernel} {cell.cost:.2f}" for cell in changed[:3]]
    worst = f"{cells[-1].kernel} {cells[-1].cost:.2f}"
    return (
        f"{name:18}{len(changed):8}{mean:>6}{len(gaining(cells)):6}{len(losing(cells)):6}"
        f"{compile_mean:8.2f}  {'; '.join(named)} | {worst}"
        f" | {slowest.kernel} {slowest.compile_cost:.2f}"
    )


def list_of_losses(cells: Sequence[Cell]) -> str:
    """Writes a line for each cell that costs over LIMIT, the worst of each pass first."""
    return "\n".join(_loss_lines(cells)) or "none"


def _loss_lines(cells: Sequence[Cell]) -> Iterator[str]:
    for name, own in by_pass(cells).items():
        for cell in reversed(losing(own)):
            yield f"{name:18}{cell.kernel:28}{cell.cost:6.2f}"
