"""`warploom run` before a kernel's file, and before a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from warploom.cli import programs
from warploom.cli.commands import flags_of
from warploom.cli.verbs import CHECK_PROGRAM, PROGRAM, verbs
from warploom.clients.settings import Settings, bytes_of
from warploom.core.errors import WarploomError


@pytest.mark.parametrize(
    "args",
    [
        ["program.py"],
        ["--device", "a100", "program.py", "--kernel", "x"],
        ["--seed=3", "--report", "full", "program.py"],
        [sys.executable, "-c", "pass"],
        ["--json", "out.json", "program.py"],
    ],
)
def test_programs_are_known_by_their_names(args: list[str]) -> None:
    assert verbs(["run", *args]) == [PROGRAM, *args]


def test_a_program_is_looked_up_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    given = ["run", "simulate", "--steps", "3"]
    assert verbs(given) == given
    program = tmp_path / "simulate"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    assert verbs(given) == [PROGRAM, *given[1:]]


@pytest.mark.parametrize("flag", ["--json", "--view", "--caching-allocator"])
def test_a_flag_of_check_takes_no_program_for_its_value(flag: str) -> None:
    assert verbs(["check", flag, "program.py"]) == [CHECK_PROGRAM, flag, "program.py"]
    assert verbs(["check", flag, "saxpy.cu"]) == ["check", flag, "saxpy.cu"]


@pytest.mark.parametrize(
    "args",
    [
        ["saxpy.cu", "--kernel", "saxpy"],
        ["saxpy.ptx"],
        ["--json", "saxpy.cu"],
        ["--kernel", "saxpy", "saxpy.cu"],
        ["--help"],
        [],
    ],
)
def test_kernels_are_launched_as_ever(args: list[str]) -> None:
    assert verbs(["run", *args]) == ["run", *args]


def test_cuda_sources_with_a_main_are_programs(tmp_path: Path) -> None:
    source = tmp_path / "program.cu"
    source.write_text(
        "__global__ void main_part() {}\nint main(int argc, char **argv) {}\n", "utf-8"
    )
    assert verbs(["run", str(source)])[0] == PROGRAM
    source.write_text("__global__ void main_part() {}\n", "utf-8")
    assert verbs(["run", str(source)])[0] == "run"


@pytest.mark.parametrize(
    ("before", "after", "is_program"),
    [
        ("#ifdef TEST", "#endif", False),
        ("#if 0", "#endif", False),
        ("#ifdef TEST\n#else", "#endif", True),
        ("#ifndef TEST", "#endif", True),
        ("#define TEST\n#ifdef TEST", "#endif", True),
        ("#ifdef TEST\n#ifndef OTHER", "#endif\n#endif", False),
        ("#ifdef TEST\n#endif", "", True),
        ("#if __CUDACC_VER_MAJOR__ > 12", "#endif", True),
    ],
)
def test_a_main_that_the_preprocessor_leaves_out_is_none(
    before: str, after: str, is_program: bool, tmp_path: Path
) -> None:
    source = tmp_path / "program.cu"
    source.write_text(f"{before}\nint main() {{ return 0; }}\n{after}\n", "utf-8")
    assert (verbs(["run", str(source)])[0] == PROGRAM) is is_program


def test_a_kernel_of_a_source_with_a_main_is_launched_where_it_is_named(tmp_path: Path) -> None:
    source = tmp_path / "program.cu"
    source.write_text("__global__ void k() {}\nint main() { return 0; }\n", "utf-8")
    for launch in ([str(source), "--kernel", "k"], ["--kernel=k", str(source), "--block", "32"]):
        assert verbs(["run", *launch]) == ["run", *launch]
    assert verbs(["run", "--", str(source), "--kernel", "k"])[0] == PROGRAM


def test_a_command_wins_over_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    command = commands / "simulate"
    command.write_text("#!/bin/sh\n", "utf-8")
    command.chmod(0o755)
    (tmp_path / "simulate").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(commands))
    assert programs.program_command("simulate", ()) == ["simulate"]
    (tmp_path / "own").write_text("#!/bin/sh\n", "utf-8")
    assert programs.program_command("own", ()) == [str(tmp_path / "own")]


@pytest.mark.parametrize("command", ["profile", "time", "view", "sass", "explore", "tune"])
def test_a_program_keeps_its_own_options(command: str, tmp_path: Path) -> None:
    """Options before a program's name are the command's, among them flags without a value; a source
    with a main is a program, unless the launch of a kernel is given."""
    program, source = tmp_path / "app", tmp_path / "app.cu"
    program.write_bytes(b"")
    source.write_text("__global__ void k() {}\nint main() { return 0; }\n", "utf-8")
    given = [command, "--cooperative", "--kernel", "k", str(program), "--kernel", "x"]
    expected = [*given[:4], "--program", "--", *given[4:]]
    assert verbs(given, flags_of) == expected
    assert verbs([command, str(source)], flags_of)[1:3] == ["--program", "--"]
    for launch in (["--grid", "2", str(source)], [str(source), "--kernel", "k"]):
        assert verbs([command, *launch], flags_of) == [command, *launch]
    assert verbs([command, "app.wlcore"], flags_of) == [command, "app.wlcore"]


def test_settings_travel_through_the_environment() -> None:
    given = Settings("a100", schedule="random", seed=7, memory="1.5G", report="full")
    assert Settings.from_environment(given.environment()) == given
    assert bytes_of("1.5G") == 3 << 29
    assert bytes_of("512 MiB") == 512 << 20
    with pytest.raises(WarploomError, match="512M or 16G"):
        bytes_of("much")
    with pytest.raises(WarploomError, match="no device"):
        Settings("gtx-9999").checked()
