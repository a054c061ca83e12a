"""Checks the modules of the package: no import cycles, and no two classes with one name in the
engine."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "warploom"

ENGINE = {
    *("simt", "cost", "texture", "asynchronous", "detector", "program", "analysis", "llvm", "abi"),
    *("helpers", "shapes", "ir", "passes", "lower", "compilation", "machine", "timing"),
}
"""The packages in which no two classes have one name."""


def parse_modules(package: Path) -> dict[str, ast.Module]:
    """Returns the syntax tree of each module in the folder of a package, by the module's name."""
    return {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): ast.parse(path.read_text("utf-8"))
        for path in package.rglob("*.py")
    }


def imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yields the names that a module imports, in functions and for type checkers too: each as the
    name of a module, and as the module that contains it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not supported"
            module = str(node.module)
            yield from ((f"{module}.{alias.name}", module) for alias in node.names)


def check_cycles(modules: Mapping[str, ast.Module]) -> None:
    """Fails with the modules of a cycle if modules import each other."""
    graph = {
        name: {full if full in modules else module for full, module in imported_names(tree)}
        for name, tree in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " -> ".join(reversed(error.args[1])), pytrace=False)


def test_no_modules_import_each_other() -> None:
    modules = parse_modules(PACKAGE)
    assert "warploom.host.run" in modules
    check_cycles(modules)


@pytest.mark.parametrize(
    "back",
    [
        "from package.upper import value",
        "from package import upper",
        "import package.upper",
        "if TYPE_CHECKING:\n    from package.upper import value",
        "def later():\n    from package import upper",
    ],
)
def test_every_kind_of_import_can_make_a_cycle(back: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "upper.py").write_text("from package.inner import lower\n", "utf-8")
    (package / "inner" / "lower.py").write_text("import ast\n", "utf-8")
    check_cycles(parse_modules(package))
    (package / "inner" / "lower.py").write_text(back, "utf-8")
    cycle = "package.(upper -> package.inner.lower|inner.lower -> package.upper) -> "
    with pytest.raises(pytest.fail.Exception, match=f"import cycle: {cycle}"):
        check_cycles(parse_modules(package))


def test_classes_of_the_engine_have_different_names() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for name, tree in parse_modules(PACKAGE).items():
        if f"{name}.".split(".")[1] in ENGINE:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(name)
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


@pytest.mark.parametrize("module", ["warploom.host.device", "warploom.clients.settings"])
def test_a_device_does_without_the_report_and_the_model_of_time(module: str) -> None:
    """Each process that uses the software GPU imports these; a report takes 0.1 s more."""
    code = f"import sys, {module}; print('warploom.report.sections' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
