"""PTX of a CUDA C++ source comes from the cache on disk while nothing that decides it changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warploom as wl
from warploom.frontends import cuda_cpp
from warploom.host.programs.cached_ptx import compile_cached

KERNEL = 'extern "C" __global__ void store(int *x) { *x = VALUE; }\n'
CC = (8, 0)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The sources that NVRTC compiles during a test, over a cache that begins empty."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    sources: list[str] = []
    compile_cuda = cuda_cpp.compile_cuda

    def noted(text: str, *rest: object) -> str:
        sources.append(text)
        return compile_cuda(text, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(cuda_cpp, "compile_cuda", noted)
    return sources


def test_a_second_compilation_is_found(compiled: list[str]) -> None:
    first = compile_cached(KERNEL, "k.cu", CC, ["-DVALUE=7"])
    assert compile_cached(KERNEL, "k.cu", CC, ["-DVALUE=7"]) == first
    assert "7" in first
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("name", "cc", "options"),
    [("other.cu", CC, ["-DVALUE=7"]), ("k.cu", (9, 0), ["-DVALUE=7"]), ("k.cu", CC, ["-DVALUE=8"])],
)
def test_name_device_and_options_decide(
    compiled: list[str], name: str, cc: tuple[int, int], options: list[str]
) -> None:
    compile_cached(KERNEL, "k.cu", CC, ["-DVALUE=7"])
    compile_cached(KERNEL, name, cc, options)
    assert len(compiled) == 2


def test_the_text_of_every_included_file_decides(compiled: list[str], tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text('#include \\\n "inner.h"\n', "utf-8")
    text = '/**/ #include "outer.h"\n' + KERNEL
    for value in (7, 8):
        (tmp_path / "inner.h").write_text(f"#define VALUE {value}\n", "utf-8")
        for _ in range(2):
            assert f", {value};" in compile_cached(text, str(tmp_path / "k.cu"), CC, [])
    assert len(compiled) == 2


def test_a_file_beside_a_source_in_the_working_folder_decides(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for value in (7, 8):
        Path("value.h").write_text(f"#define VALUE {value}\n", "utf-8")
        assert f", {value};" in compile_cached(f'#include "value.h"\n{KERNEL}', "k.cu", CC, [])
    assert len(compiled) == 2


def test_a_file_in_an_earlier_folder_decides(compiled: list[str], tmp_path: Path) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    early.mkdir()
    late.mkdir()
    (late / "value.h").write_text("#define VALUE 7\n", "utf-8")
    options = [f"-I{early}", f"--include-path={late}"]
    text = "#include <value.h>\n" + KERNEL
    assert ", 7;" in compile_cached(text, str(tmp_path / "k.cu"), CC, options)
    (early / "value.h").write_text("#define VALUE 8\n", "utf-8")
    assert ", 8;" in compile_cached(text, str(tmp_path / "k.cu"), CC, options)


@pytest.mark.parametrize(
    "line",
    [
        "// __DATE__",
        '#define NAMED "k.h"\n#if 0\n#include NAMED\n#endif',
        '#if __has_include("k.h")\n#endif',
        '#if 0\n# /**/ include "k.h"\n#endif',
    ],
)
def test_what_the_text_does_not_decide_is_compiled_each_time(
    compiled: list[str], line: str
) -> None:
    for _ in range(2):
        compile_cached(f"{line}\n{KERNEL}", "k.cu", CC, ["-DVALUE=7"])
    assert len(compiled) == 2


def test_options_that_may_name_files_are_not_followed(compiled: list[str], tmp_path: Path) -> None:
    (tmp_path / "value.h").write_text("#define VALUE 7\n", "utf-8")
    for _ in range(2):
        compile_cached(KERNEL, "k.cu", CC, [f"--pre-include={tmp_path / 'value.h'}"])
    assert len(compiled) == 2


def test_the_compiler_is_not_loaded_for_what_is_known(tmp_path: Path) -> None:
    program = (
        "import sys; import warploom as wl; wl.Device('a100').compile(sys.argv[1]);"
        "print('cuda.bindings.nvrtc' in sys.modules)"
    )
    text = KERNEL.replace("VALUE", "7")
    loaded: list[str] = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", program, text],
            env={**os.environ, "WARPLOOM_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        loaded.append(run.stdout.strip())
    assert loaded == ["True", "False"]


def test_lines_are_of_the_file_that_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders have the same file: by its relative name, each gets lines of its own."""
    text = 'extern "C" __global__ void k(int *x) { *x = 1; }'
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "k.cu").write_text(text, "utf-8")
        monkeypatch.chdir(folder)
        program = wl.Device().load("k.cu")["k"].program
        assert program.line(program.size - 1) == f"{folder / 'k.cu'}:1"
