"""What `import warploom` gives, and what it does not take time for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import warploom as wl

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", wl.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(wl, name) is not None
    assert name in dir(wl)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'devise'"):
        wl.devise  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_the_package_alone_imports_nothing_large() -> None:
    """NumPy, LLVM and the machine come with the first name that needs them."""
    output = "import sys, warploom; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", output], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "warploom" in loaded
    assert not {"numpy", "llvmlite", "numba", "msgspec"} & set(loaded)


def test_the_version_is_that_of_the_distribution() -> None:
    assert wl.__version__ == version("warploom")


USE = """
import numpy as np
import warploom as wl

gpu = wl.Device("h100", schedule="fair")
x = gpu.zeros((2, 3), np.float32)
run = gpu.load("k.cu")["k"][1, 32](x, max_instructions=5)
cycles: float = run.time(scheduler="gto").cycles
text: str = run.report() + wl.__version__
"""

MISUSE = """
import warploom as wl

gpu = wl.Device("h100", workers="2")
run = gpu.load("k.cu")["k"][1, 32](1, max_instruction=5)
wl.Devise()
number: int = gpu.zeros(3).name
"""


def test_type_checkers_see_the_types(tmp_path: Path) -> None:
    """What is right passes strictly; of what is wrong each line is an error."""
    assert files("warploom").joinpath("py.typed").is_file()
    (tmp_path / "use.py").write_text(USE, "utf-8")
    (tmp_path / "misuse.py").write_text(MISUSE, "utf-8")
    # Without a home folder, pyright does not start unless it is told where its files are.
    own = {} if "HOME" in os.environ else {"PYRIGHT_PYTHON_CACHE_DIR": str(tmp_path / "pyright")}
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "."],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | own,
    )
    output = [
        (Path(found["file"]).name, found["range"]["start"]["line"] + 1)
        for found in json.loads(checked.stdout)["generalDiagnostics"]
    ]
    assert sorted(set(output)) == [("misuse.py", line) for line in (4, 5, 6, 7)]


def test_extras_leave_the_version_of_cuda_to_one_package() -> None:
    """Wheels that extras name by themselves would be of other versions than those of PyTorch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, packages in project["optional-dependencies"].items():
        assert not [one for one in packages if re.match("nvidia-(cuda|nvvm|nvjitlink)", one)], name
