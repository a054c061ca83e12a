"""Lists the launches that are recorded on hardware.

They are the kernels of `benchmarks/families` in their natural shapes, and the search spaces of
`benchmarks/tuning` in their published sizes. `Launch.arguments` are numbers and descriptions of
arrays (`Array`), so that a launch can be written as JSON and made where Warploom is not installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from families.base import Case

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks/tuning")]

SMS = 132
HALF_SHARED = 87552
"""Bytes of shared memory of which a multiprocessor has room for two blocks, not for three."""
SIDE, SUMMED = 4096, 1 << 28
PRODUCTS = {
    "gemm_naive": (32, (32, 32)),
    "gemm_coalesced": (32, (1024,)),
    "gemm_shared": (32, (1024,)),
    "gemm_rows": (64, (512,)),
    "gemm_tiles": (128, (256,)),
}
"""By kernel, how many rows and columns a block makes, and its threads."""
SUMS = (
    *("sum_atomic", "sum_staged_atomic", "sum_divergent", "sum_conflicting", "sum_halved"),
    *("sum_of_two", "sum_of_strided_pairs", "sum_unrolled_warp", "sum_unrolled"),
    *("sum_shuffled_down", "sum_shuffled_up", "sum_shuffled_xor"),
)

Argument = dict[str, Any] | int | float


@dataclass(frozen=True)
class Launch:
    """Describes a kernel of a CUDA source with options for the compiler, and a launch of it.

    `arguments` has numbers, and arrays as `array` writes them; it is empty where `case` names a
    kernel of `benchmarks/families`, whose arguments that kernel's module makes.
    """

    name: str
    source: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    options: tuple[str, ...] = ()
    shared_bytes: int = 0
    arguments: tuple[Argument, ...] = ()
    case: str = ""

    @property
    def file(self) -> str:
        """Names the file of the kernel's machine code."""
        return f"{self.name.replace('/', '_').replace(' ', '_')}.cubin"


def array(dtype: str, count: int, contents: str = "uniform") -> Argument:
    """Describes an array of so many elements.

    `contents` is uniform (from 0 to 1; integers of any value), zeros, or shifts (the delays of
    channels in dedispersion, as benchmarks/tuning/published.py has them).
    """
    return {"dtype": dtype, "count": count, "contents": contents}


def read_launches(file: Path) -> list[Launch]:
    """Returns the launches of a JSON file that `write_launches` made."""
    rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return [Launch(**{key: _frozen(value) for key, value in row.items()}) for row in rows]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write_launches(file: Path, launches: Sequence[Launch]) -> None:
    """Write launches as JSON."""
    file.write_text(json.dumps([asdict(one) for one in launches], indent=1) + "\n", "utf-8")


def case_of(name: str) -> Case | None:
    """Returns the kernel of `benchmarks/families` with this name, or None."""
    from families import CASES

    return next((case for case in CASES if case.name == name), None)


def family_launches() -> Iterator[Launch]:
    """Yields the kernels of `benchmarks/families`, each in its natural shape."""
    from families import CASES

    for case in CASES:
        shape = case.shapes[0]
        problem = case.build(shape)
        source = str(case.path.relative_to(ROOT))
        launch = problem.grid, shape.block, (), problem.shared_bytes, ()
        yield Launch(f"families/{case.name}", source, case.kernel, *launch, case.name)


def space_launches() -> Iterator[Launch]:
    """Yields the configurations of the search spaces, each with the published problem."""
    import published

    file = ROOT / "benchmarks/tuning/spaces.json"
    spaces: dict[str, Any] = json.loads(file.read_text("utf-8"))["spaces"]
    for name, space in spaces.items():
        for at, row in enumerate(space["rows"]):
            one = dict(zip(space["parameters"], row, strict=False))
            options = published.source_of(published.SPACES[name], one)[1]
            block = published.SPACES[name].block(one)
            arguments = _ARGUMENTS[name](one)
            yield Launch(
                f"{name}/{at}",
                "benchmarks/tuning/kernels.cu",
                name,
                _grid(name, one),
                block,
                tuple(options),
                0,
                arguments,
            )


def figure_launches() -> Iterator[Launch]:
    """Yields the streams, products and sums that `warploom validate` holds against published
    figures, in sizes that fill a device of `SMS` multiprocessors for long."""
    kernels, counted = (f"src/warploom/validation/{name}.cu" for name in ("kernels", "counted"))
    for name in ("init", "read", "scale", "triad"):
        for threads in (64, 256, 1024):
            n = 2 * SMS * 200 * threads
            arguments = array("f8", n), array("f8", 2 * n), n
            launch = (n // threads,), (threads,), (), HALF_SHARED, arguments
            yield Launch(f"streams/{name} {threads}", kernels, name, *launch)
    for name, (side, block) in PRODUCTS.items():
        matrix = array("f4", SIDE * SIDE)
        launch = (SIDE // side,) * 2, block, (), 0, (matrix, matrix, matrix, SIDE, SIDE)
        yield Launch(f"products/{name}", kernels, name, *launch)
    for name in SUMS:
        blocks = SUMMED // (512 if name in ("sum_of_two", "sum_of_strided_pairs") else 256)
        arguments = array("i4", SUMMED), array("i4", blocks, "zeros"), SUMMED
        yield Launch(f"sums/{name}", counted, name, (blocks,), (256,), (), 1024, arguments)


def _grid(name: str, one: dict[str, Any]) -> tuple[int, ...]:
    """Returns the published grid of a configuration."""
    import published

    if name == "dedispersion":  # blocks behind the last measure have nothing to do
        return -(-published.SAMPLES // one["block_size_x"]), -(
            -published.MEASURES // one["block_size_y"]
        )
    (part,) = published.SPACES[name].parts(one)
    return part.grid


def _convolution(one: dict[str, Any]) -> tuple[Argument, ...]:
    from published import SIDE

    return array("f4", SIDE * SIDE, "zeros"), array("f4", (SIDE + 32) ** 2)


def _pnpoly(one: dict[str, Any]) -> tuple[Argument, ...]:
    from published import POINTS

    return array("i4", POINTS, "zeros"), array("f4", 2 * POINTS), POINTS


def _gemm(one: dict[str, Any]) -> tuple[Argument, ...]:
    from published import SIDE

    matrix = array("f4", SIDE * SIDE)
    return SIDE, SIDE, SIDE, 1.0, 1.0, matrix, matrix, array("f4", SIDE * SIDE, "zeros")


def _dedispersion(one: dict[str, Any]) -> tuple[Argument, ...]:
    from published import CHANNELS, DELAY, MEASURES, SAMPLES

    data = array("u1", CHANNELS * (SAMPLES + DELAY))
    out, shifts = array("f4", SAMPLES * MEASURES, "zeros"), array("f4", CHANNELS, "shifts")
    return data, out, shifts, CHANNELS, 0, one["tile_size_x"] * one["tile_size_y"], 0


_ARGUMENTS = {
    "convolution": _convolution,
    "pnpoly": _pnpoly,
    "gemm": _gemm,
    "dedispersion": _dedispersion,
}
