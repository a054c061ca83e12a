"""What a launch from the shell can be given: contents of buffers, structures, constants, expected
results; and the commands that `warploom kernels` prints."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warploom.cli.main import main
from warploom.host.values import BufferArgument, parse_arguments

SOURCE = """
struct Line { float slope; int offset; };
__constant__ int table[4];
extern "C" __global__ void along(int n, Line line, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = line.slope * x[i] + line.offset + table[i % 4];
}
template <class T> __global__ void twice(T *x, double by) { x[threadIdx.x] *= by; }
template __global__ void twice<short>(short *, double);
"""

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "k.cu"
    file.write_text(SOURCE, "utf-8")
    return file


@pytest.fixture
def warploom(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["warploom", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def content(text: str) -> list[float]:
    [argument] = parse_arguments([text])
    assert isinstance(argument, BufferArgument)
    return argument.content.tolist()


def test_contents_are_constants_lists_and_distributions() -> None:
    assert content("f32[3]=2.5") == [2.5] * 3
    assert content("i8[4]=-1") == [-1] * 4
    assert content("i32[2x2]=1,2,3,4") == [[1, 2], [3, 4]]
    assert content("f32[8]=random") == content("f32[8]=random:0")
    drawn = np.array(content("f64[4000]=uniform:-2:6"))
    assert drawn.min() >= -2
    assert drawn.max() < 6
    assert abs(drawn.mean() - 2) < 0.2  # the middle; 4000 draws are within 0.04 in the mean
    normal = np.array(content("f64[4000]=normal:5:2:9"))
    assert abs(normal.mean() - 5) < 0.2
    assert abs(normal.std() - 2) < 0.2
    assert set(content("i32[400]=uniform:0:3")) == {0, 1, 2}


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".bin", ".npy"])
def test_contents_are_read_from_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"x{suffix}"
    numbers = np.array([[1.5, 2], [3, 4]], np.float32)
    if suffix == ".bin":
        numbers.tofile(file)
    elif suffix == ".npy":
        np.save(file, numbers)
    else:
        np.savetxt(file, numbers, delimiter="," if suffix == ".csv" else " ")
    assert content(f"f32[2x2]={file}") == [[1.5, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("i8[2]=300", "a number that does not fit in int8"),
        ("i32[3]=1,2", "2 numbers, but the buffer has 3 elements"),
        ("f32[2]=uniform:1", "is neither one of zeros, ones"),
        ("f32[2]=none.csv", "none.csv cannot be loaded"),
        ("{f99:1}", "a member's type is not one of"),
        ("{i8:300}", "does not fit its type"),
    ],
)
def test_what_cannot_be_a_content_says_why(text: str, reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        parse_arguments([text])


LAUNCH = ("--kernel", "along", "--arg", 4, "--arg", "{f32:0.5,i32:10}", "--arg", "f32[4]=2,4,6,8")


def test_structures_constants_and_expected_results(warploom: Called, file: Path) -> None:
    """0.5 * x + 10 + table."""
    launch = ("run", file, *LAUNCH, "--arg", "y:f32[4]=zeros", "--constant", "table=i32[4]=100")
    code, out, _ = warploom(*launch, "--expect", "y=111,112,113,114")
    assert code == 0
    assert "y: float32[4] = [111., 112., 113., 114.]" in out
    assert out.endswith("As expected: y.\n")
    code, _, err = warploom(*launch, "--expect", "y=111,112,113,115")
    assert code == 1
    assert err == "error: y[3] is 114.0, but 115.0 was expected; 1 of 4 elements differ\n"


def test_an_unknown_constant_names_those_that_exist(warploom: Called, file: Path) -> None:
    launch = ("run", file, *LAUNCH, "--arg", "y:f32[4]=zeros")
    code, _, err = warploom(*launch, "--constant", "tabel=i32[4]=1")
    assert code == 2
    assert "has no variable 'tabel'. Its variables: table" in err
    code, _, err = warploom(*launch, "--constant", "table=i32[8]=1")
    assert code == 2
    assert "has 16 bytes, but the values have 32" in err


def test_kernels_are_printed_with_commands_that_run(warploom: Called, file: Path) -> None:
    code, out, _ = warploom("kernels", file)
    assert code == 0
    assert "along(int n, Line line, const float *x, float *y)" in out
    _, shown, _ = warploom("kernels", file, "--json")
    rows = json.loads(shown)
    assert {row["name"] for row in rows} == {"along", "twice<short>"}
    for row in rows:
        program, *arguments = shlex.split(row["command"])
        assert program == "warploom"
        assert warploom(*arguments)[0] == 0


def test_a_first_screen_has_fifteen_lines(warploom: Called, tmp_path: Path) -> None:
    """Three buffers of numbers with many digits have a line each; the accesses are strided, the
    warps partial and diverged, so that the verdict has all the lines that it may have."""
    file = tmp_path / "worst.cu"
    file.write_text(
        "__global__ void worst(const float *x, float *y, float *z)\n{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    float v = x[32 * i];\n"
        "    if (i % 2) for (int k = 0; k < 9; k++) v = v * v + y[31 * i];\n"
        "    z[33 * i] = v / 3;\n}\n",
        "utf-8",
    )
    buffers = [("--arg", f"{name}:f32[65536]=normal:1e5:1e7:3") for name in ("x", "y", "z")]
    given = [word for pair in buffers for word in pair]
    code, out, _ = warploom("run", file, "--grid", 20, "--block", 65, *given)
    assert code == 0
    lines = out.splitlines()
    assert [line[:3] for line in lines[:4]] == ["x: ", "y: ", "z: ", ""]
    assert all(len(line) <= 100 for line in lines[:3])
    assert sum(line.startswith("  ") and line[2] != " " for line in lines) >= 2
    assert len(lines) <= 15
