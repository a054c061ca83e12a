"""Kernels of the page, of lessons and of learners: they show no file of others, and write none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from warploom.cli.main import app
from warploom.core.errors import WarploomError
from warploom.host.programs.confinement import Confinement
from warploom.observe.trace import Trace
from warploom.ui.lessons import FOLDER
from warploom.ui.runner import NOTHING, Limits, run
from warploom.ui.schema import LaunchRequest, Refusal

KERNEL = "__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }"

SECRET = "for nobody's eyes"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n", "utf-8")
    return file


def request(source: str, name: str = "k.cu", options: tuple[str, ...] = ()) -> LaunchRequest:
    return LaunchRequest(
        name=name, source=source, args=("i32[32]=zeros",), device="v100", options=options
    )


def outcome(asked: LaunchRequest, confinement: Confinement = NOTHING) -> bytes | Refusal:
    return asyncio.run(run(asked, Limits(seconds=300), confinement))


def test_a_run_of_the_page_includes_no_file_of_others(secret: Path) -> None:
    given = outcome(request(f'#include "{secret}"\n{KERNEL}'))
    assert isinstance(given, Refusal)
    assert given.kind == "compile"
    assert "outside the kernel's folder" in given.message
    assert SECRET not in given.message


def test_a_run_of_the_page_writes_no_file(tmp_path: Path) -> None:
    for option in ("--time=", "-fdevice-time-trace=", "--create-pch="):
        given = outcome(request(KERNEL, options=(f"{option}{tmp_path}/written",)))
        assert isinstance(given, Refusal)
        assert f"the option '{option}" in given.message
    assert not list(tmp_path.glob("written*"))


def test_a_macro_in_a_header_of_the_toolkit_shows_no_file(secret: Path) -> None:
    """Headers of Thrust include files by a name that macros make."""
    text = f"""#include <thrust/detail/config.h>
#undef __THRUST_HOST_SYSTEM_ALGORITH_HEADER_INCLUDE
#define __THRUST_HOST_SYSTEM_ALGORITH_HEADER_INCLUDE(x) "{secret}"
#define __THRUST_HOST_SYSTEM_ALGORITH_DETAIL_HEADER_INCLUDE(x) "{secret}"
#include <thrust/system/detail/adl/sort.h>
{KERNEL}"""
    given = outcome(request(text))
    assert isinstance(given, Refusal)
    assert SECRET not in given.message
    assert SECRET not in str(given.errors)


@pytest.mark.parametrize("suffix", [".cu", ".ptx"])
def test_line_tables_show_no_file(secret: Path, suffix: str) -> None:
    source = f'#line 1 "{secret}"\n{KERNEL}'
    if suffix == ".ptx":
        source = f""".version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p) {{ .loc 1 1 0
 ret; }}
.file 1 "{secret}"
"""
    given = outcome(request(source, f"k{suffix}"))
    assert isinstance(given, bytes)
    assert all(SECRET not in one.text for one in Trace.from_bytes(given).sources)


def test_the_users_own_headers_are_included(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(KERNEL, "utf-8")
    (tmp_path / "kernel").mkdir()
    name, text = str(tmp_path / "kernel" / "k.cu"), '#include "../own.h"\n'
    given = outcome(request(text, name), Confinement.of(text, name, ()))
    assert isinstance(given, bytes)
    refused = outcome(request(text, name), Confinement((str(tmp_path / "kernel"),)))
    assert isinstance(refused, Refusal)


def lesson(tmp_path: Path, old: str, new: str) -> Path:
    """Returns the file of a lesson with a change."""
    text = (FOLDER / "structures.toml").read_text("utf-8")
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new, 1), "utf-8")
    return file


def test_a_lesson_from_a_file_includes_no_file_of_others(tmp_path: Path, secret: Path) -> None:
    file = lesson(tmp_path, "source = '''\n", f"source = '''\n#include \"{secret}\"\n")
    with pytest.raises(WarploomError, match="outside the kernel's folder"):
        CliRunner().invoke(
            app, ["learn", str(file), "--export", str(tmp_path / "p.html")], catch_exceptions=False
        )


def test_a_lesson_from_a_file_has_no_options_of_files(tmp_path: Path) -> None:
    file = lesson(tmp_path, "[launch]\n", f'[launch]\noptions = ["--time={tmp_path}/t"]\n')
    with pytest.raises(WarploomError, match="the option '--time"):
        CliRunner().invoke(
            app, ["learn", str(file), "--export", str(tmp_path / "p.html")], catch_exceptions=False
        )
    assert not (tmp_path / "t").exists()


def test_a_learners_kernel_includes_no_file_of_others(tmp_path: Path, secret: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    kernel = mine / "structures.cu"
    kernel.write_text(f'#include "{secret}"\n{KERNEL}', "utf-8")
    result = CliRunner().invoke(app, ["learn", "structures", "--check", str(kernel)])
    assert result.exit_code == 1
    assert "outside the kernel's folder" in result.output
    assert SECRET not in result.output


def test_what_the_server_lets_a_changed_kernel_use(tmp_path: Path) -> None:
    """The confinement survives its journey to the process of the run."""
    made = Confinement.of('#include "a.h"\n', str(tmp_path / "k.cu"), ("-I/x", "-w"))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Confinement) == made
    assert made.folders == (str(tmp_path), "/x")
