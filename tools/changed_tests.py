"""Chooses the tests that belong to changed files, nearest first, and lists a test of each layer.

To a changed file belong, in this order:

1. itself, if it is a file of tests, and the test file of its name (`rising.py`: `test_rising.py`);
2. the test files that import it, or that name it if it is no module (`saxpy.cu`);
3. the folder of tests that has the name of its part, and those of `ALSO`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

PACKAGE = "src/warploom/"

ALSO = {
    "core": ("host", "isa"),
    "simt": ("programs",),
    "cost": ("programs",),
    "texture": ("programs",),
    "asynchronous": ("programs",),
    "detector": ("sanitize",),
    "isa": ("machine",),
    "ptx": ("programs",),
    "program": ("analysis", "programs"),
    "analysis": ("passes", "programs"),
    "llvm": ("helpers", "programs"),
    "abi": ("helpers", "programs"),
    "helpers": ("programs",),
    "ir": ("passes", "programs"),
    "passes": ("programs", "machine"),
    "lower": ("passes", "programs", "machine"),
    "compilation": ("llvm", "programs"),
    "machine": ("programs",),
    "clients": ("debug",),
}
"""Folders of tests that run whole programs through a part, beside the part's own."""

FOLDERS = {"web": "ui", "native": "clients", "styles": "tools", "docs": "docs"}
"""Folders of tests for folders outside the package."""


def choose_tests(changed: Iterable[str], tests: Mapping[str, str]) -> list[str]:
    """Returns the test files that belong to changed files, nearest first, each once.

    Paths are relative to the repository; `tests` has the text of every Python file under `tests`.
    """
    files, texts = sorted(changed), {path: tests[path] for path in sorted(tests) if is_test(path)}
    rules: tuple[Rule, ...] = (_own, importers, _in_folders)
    chosen = (path for rule in rules for file in files for path in rule(file, texts))
    return list(dict.fromkeys(chosen))


def is_test(path: str) -> bool:
    """Returns whether a path is that of a file of tests. Those of PyTorch run in another
    environment."""
    name = PurePosixPath(path).name
    return path.startswith("tests/") and name.startswith("test_") and "/pytorch/" not in path


Rule = Callable[[str, Mapping[str, str]], Iterable[str]]


def _own(file: str, texts: Mapping[str, str]) -> Iterator[str]:
    name = f"test_{PurePosixPath(file).stem}.py"
    yield from (path for path in texts if path in (file, f"tests/tools/{name}"))
    yield from (path for path in texts if path.endswith(f"/{name}"))


def importers(file: str, texts: Mapping[str, str]) -> list[str]:
    """Returns the files whose text imports a module, or names a file that is none."""
    mention = _mention(PurePosixPath(file))
    return [path for path, text in texts.items() if path != file and mention.search(text)]


def _mention(path: PurePosixPath) -> re.Pattern[str]:
    if path.suffix != ".py":
        return re.compile(rf"\b{re.escape(path.name)}\b")
    parts = path.with_suffix("").parts
    if not str(path).startswith(PACKAGE):
        return re.compile(rf"^\s*(?:import|from) {parts[-1]}\b", re.MULTILINE)
    *package, name = parts[1:-1] if parts[-1] == "__init__" else parts[1:]
    folder = r"\.".join(package)
    imported = rf"(?:from|import) {folder}\.{name}\b" if package else r"import warploom\b"
    return re.compile(rf"^\s*(?:{imported}|from {folder} import .*\b{name}\b)", re.MULTILINE)


def _in_folders(file: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yields the test files in the folders of a file's part."""
    if file.startswith(PACKAGE):
        part = file.removeprefix(PACKAGE).partition("/")[0]
        folders = (part, *ALSO.get(part, ()))
    else:
        folders = tuple(filter(None, [FOLDERS.get(file.partition("/")[0])]))
    for folder in folders:
        yield from (path for path in texts if path.startswith(f"tests/{folder}/"))


SMOKE = {
    "warploom.frontends": "frontends/test_cuda_cpp.py::test_the_ptx_names_the_file_and_its_lines",
    "warploom.core": "core/test_unpacking.py",
    "warploom.devices": "devices/test_occupancy.py::test_sixty_four_registers_are_half_an_sm",
    "warploom.simt": "simt/test_placement.py",
    "warploom.cost": "cost/test_costs.py::test_sectors_and_lines_of_a_strided_global_access",
    "warploom.texture": "texture/test_fetch.py",
    "warploom.asynchronous": "asynchronous/test_zero_columns.py",
    "warploom.detector": "sanitize/test_findings.py::test_a_finding_says_who_and_where",
    "warploom.isa": "isa/test_integer_ops.py",
    "warploom.ptx": "ptx/test_parser.py",
    "warploom.program": "program/test_cfg.py",
    "warploom.llvm": "llvm/test_target.py",
    "warploom.analysis": "analysis/test_static_schedule.py",
    "warploom.shapes": "shapes/test_vector_shape.py",
    "warploom.abi": "helpers/test_range_cache_filling.py",
    "warploom.ir": "ir/test_access_table.py",
    "warploom.helpers": "helpers/test_rising.py",
    "warploom.passes": "passes/test_passes.py",
    "warploom.lower": "lower/test_pattern_slots.py",
    "warploom.compilation": "compilation/test_deterministic_code.py",
    "warploom.machine": "machine/test_tiers.py::test_launches_go_on_behind_barriers",
    "warploom.observe": "observe/test_trace.py::test_the_steps_of_a_trace_add_up_to_the_counters",
    "warploom.memory_model": "memory_model/test_kernels.py::test_two_lanes_that_meet",
    "warploom.sanitize": "sanitize/test_findings.py::test_a_finding_says_who_and_where",
    "warploom.machinecode": "machinecode/test_counts.py::"
    "test_straight_code_is_executed_once_by_each_warp",
    "warploom.timing": "timing/test_traced.py::test_states_of_a_warp_are_contiguous_and_add_up",
    "warploom.tuning": "tuning/test_space.py",
    "warploom.report": "report/test_report.py::test_sections_hold_the_counters_and_the_launch",
    "warploom.host": "host/test_device.py::test_a_launch_computes_and_counts",
    "warploom.debug": "debug/test_sessions.py::test_both_sides_of_a_divergent_if_are_stepped",
    "warploom.validation": "validation/test_figures.py::"
    "test_summaries_are_those_of_a_calculation_by_hand",
    "warploom.testing": "host/test_assertions.py",
    "warploom.clients": "clients/test_driver_calls.py::test_calls",
    "warploom.ui": "ui/test_server.py::test_a_run_gives_its_trace",
    "warploom.cuda": "clients/test_numba_in_process.py::"
    "test_host_arrays_come_back_and_read_only_ones_stay",
    "warploom.pytest_plugin": "clients/test_pytest_plugin.py::"
    "test_without_the_option_nothing_changes",
    "warploom.cli": "cli/test_cli.py::test_run_prints_json",
}
"""Quick tests for each layer that import-linter knows (pyproject.toml), from the lowest."""
