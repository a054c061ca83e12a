"""The choice of tests that belong to a change, and the quick test of each layer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from changed_tests import SMOKE, choose_tests, importers

ROOT = Path(__file__).parents[2]

TESTS = {
    "tests/helpers/test_objects.py": "from warploom.helpers import objects\n",
    "tests/helpers/test_rising.py": "from warploom.helpers.rising import steps\n",
    "tests/helpers/test_table.py": "",
    "tests/conftest.py": "from warploom.helpers.rising import steps\n",
    "tests/host/test_launches.py": "    from warploom.helpers.rising_steps import x\n",
    "tests/machine/random_programs.py": "",
    "tests/machine/test_agree.py": "from random_programs import draw\n",
    "tests/programs/test_loops.py": "import numpy\nfrom warploom.helpers.rising import steps\n",
    "tests/pytorch/test_compile.py": "from warploom.helpers.rising import steps\n",
    "tests/test_examples.py": 'FILES = ("saxpy.cu",)\n',
    "tests/tools/test_fuzz.py": "import fuzz\n",
}


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        (
            "src/warploom/helpers/rising.py",
            [
                "tests/helpers/test_rising.py",
                "tests/programs/test_loops.py",
                "tests/helpers/test_objects.py",
                "tests/helpers/test_table.py",
            ],
        ),
        ("tests/host/test_launches.py", ["tests/host/test_launches.py"]),
        ("tests/machine/random_programs.py", ["tests/machine/test_agree.py"]),
        ("examples/saxpy.cu", ["tests/test_examples.py"]),
        ("tools/fuzz.py", ["tests/tools/test_fuzz.py"]),
        ("LICENSE", []),
    ],
)
def test_the_nearest_tests_come_first(changed: str, chosen: list[str]) -> None:
    assert choose_tests([changed], TESTS) == chosen


def test_own_tests_of_all_files_come_before_those_that_import_one() -> None:
    changed = ["src/warploom/helpers/rising.py", "tools/fuzz.py"]
    chosen = choose_tests(changed, TESTS)
    assert chosen[:3] == [
        "tests/helpers/test_rising.py",
        "tests/tools/test_fuzz.py",
        "tests/programs/test_loops.py",
    ]


def test_a_module_is_imported_by_its_name_or_from_its_package() -> None:
    texts = {
        "a.py": "from warploom.llvm.disk_cache import find\n",
        "b.py": "from warploom.llvm import disk_cache, target\n",
        "c.py": "from warploom.llvm.lanes import Lanes\n",
        "d.py": "# warploom.llvm.disk_cache\n",
        "e.py": "    import warploom.llvm.disk_cache as kept\n",
    }
    assert importers("src/warploom/llvm/disk_cache.py", texts) == ["a.py", "b.py", "e.py"]
    assert importers("src/warploom/llvm/__init__.py", texts) == ["a.py", "b.py", "c.py", "e.py"]


def test_every_layer_has_a_quick_test_that_exists() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    layers = {f"warploom.{name}" for row in contract["layers"] for name in row.split(" | ")}
    assert layers <= set(SMOKE)
    for node in SMOKE.values():
        file, _, name = node.partition("::")
        assert f"def {name}" in (ROOT / "tests" / file).read_text("utf-8")
