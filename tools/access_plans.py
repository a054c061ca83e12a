"""Writes how accesses to memory are done: the table of `ir/access_plans.py` into
docs/engine.md, and the plans of the kernels of benchmarks and examples to tests/ir/golden.

`python tools/access_plans.py` after a change of what is chosen; tests compare, so that a change is
seen in review.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from families import CASES  # noqa: E402
from families.base import LaunchShape, shapes  # noqa: E402

import warploom as wl  # noqa: E402
from warploom.host.kernel import Kernel  # noqa: E402
from warploom.ir.access_plans import ANY_OP, ANY_SPACE, LINEAR, TABLE, PlanRow  # noqa: E402
from warploom.ir.plan_listing import PlannedAccess  # noqa: E402
from warploom.machine.compiled.engine import CompiledEngine  # noqa: E402
from warploom.machine.launch import Launch  # noqa: E402
from warploom.shapes.vector_shape import LANES  # noqa: E402

PAGE = ROOT / "docs" / "engine.md"
BEGIN, END = "<!-- access plans -->\n", "<!-- end of access plans -->\n"
GOLDEN = ROOT / "tests" / "ir" / "golden"
ODD = shapes("24x8")[0]
"""The second shape of each kernel: a warp is four runs of eight lanes."""

EXAMPLES = {
    "matmul": {"matmul_naive": "16x16", "matmul_tiled": "16x16"},
    "reduction": {"reduce": "256"},
    "saxpy": {"saxpy": "256"},
    "transpose": {"transpose_naive": "32x8", "transpose_tiled": "32x8"},
}
"""Examples whose plans are kept beside those of the benchmarks, and their natural shapes."""


def table() -> str:
    """Returns the table of access plans in Markdown: its first row that fits an access holds."""
    what = ("access", "space", "addresses", "conditions")
    titles = (*what, "guard", "move", "counted by", "if the guard fails")
    lines = [titles, ("---",) * len(titles), *(_cells(row) for row in TABLE)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cells(row: PlanRow) -> tuple[str, ...]:
    names = {ANY_OP: "any", ANY_SPACE: "any", LINEAR: "global, shared, constant"}
    ops = names.get(row.ops, ", ".join(row.ops))
    spaces = names.get(row.spaces, ", ".join(space.value for space in row.spaces))
    needs, plan = "; ".join(need.value for need in row.needs), row.plan
    chosen = plan.guard.value, plan.move.value, plan.cost.value, plan.exit.value
    return ops, spaces, plan.pattern.value, needs, *chosen


def page_with_table() -> str:
    """Returns docs/engine.md with the table as it is now."""
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def made_with() -> str:
    """Returns the version of the compiler on whose PTX the plans of kernels depend."""
    return f"NVRTC {importlib.metadata.version('nvidia-cuda-nvrtc')}"


def golden() -> Iterator[tuple[Path, str]]:
    """Yield the file of each kernel, and the plans of its accesses."""
    gpu, modules = wl.Device("h100"), dict[Path, wl.Module]()
    for path, name, shape in _kernels():
        if path not in modules:
            modules[path] = gpu.load(path)
        kernel, text = modules[path][name], f"{name} of {path.relative_to(ROOT)}, {made_with()}\n"
        for block in (shape, ODD):
            text += f"\nblock {block.label}\n{_planned(kernel, block)}"
        yield GOLDEN / f"{path.stem}.{name}.txt", text


def _kernels() -> Iterator[tuple[Path, str, LaunchShape]]:
    """Yield the source of each kernel, its name and its natural shape."""
    for case in CASES:
        yield case.path, case.kernel, case.shapes[0]
    for stem, kernels in EXAMPLES.items():
        for name, shape in kernels.items():
            yield ROOT / "examples" / f"{stem}.cu", name, shapes(shape)[0]


def _planned(kernel: Kernel, block: LaunchShape) -> str:
    """Returns a line for each access of a kernel."""
    x, y, z, *_ = (*block.block, 1, 1)
    launch = Launch((1, 1, 1), (x, y, z), b"")
    lines: list[str] = []
    for access in CompiledEngine(kernel.context.spec).access_plans(kernel.program, launch):
        opcode = kernel.program.instructions[access.instruction].operation.opcode
        lines.append(f"{access.instruction:5} {opcode}: {_brief(access)}\n")
    return "".join(lines)


def _brief(access: PlannedAccess) -> str:
    """Returns a plan by the names of what was chosen."""
    plan, group = access.plan, access.group
    parts = [one.name.lower() for one in (plan.pattern, plan.guard, plan.move, plan.cost)]
    if group is not None:
        base, others = group.base, [str(i) for i, _ in group.members if i != access.instruction]
        parts[0] += f" {base.width} x {LANES // base.width}, stride {base.stride}"
        parts[1] += f" with {' '.join(others)}" if others else ""
    return ", ".join([*parts, f"else {plan.exit.name.lower()}"])


def main() -> None:
    PAGE.write_text(page_with_table(), "utf-8")
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.txt"):
        old.unlink()
    for path, text in golden():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
