"""The program's streams and files: in other locales, closed, on a full disk; and its signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import started

from warploom.core import streams

ROOT = Path(__file__).parent.parent.parent

LAUNCH = [
    *("saxpy.cu", "--grid", "1", "--block", "32", "--arg", "32", "--arg", "2.0"),
    *("--arg", "x:f32[32]=ones", "--arg", "y:f32[32]=ones"),
]

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
"""A locale whose encoding is ASCII; every system has it."""

FULL = Path("/dev/full")

full_disk = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with a kernel, which is the current one."""
    shutil.copy(ROOT / "examples" / "saxpy.cu", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "warploom.cli", *arguments]


def ended(*arguments: str, shell: str = "", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Returns how a command ended; `shell` are redirections."""
    line = ["sh", "-c", f'exec "$@" {shell}', "sh", *command(*arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(line, capture_output=True, check=False, env=environment)


@posix
@pytest.mark.parametrize(
    "arguments",
    [
        ["learn"],
        ["learn", "latency", "--export", "page.html"],
        ["view", *LAUNCH, "--export", "page.html"],
        ["profile", *LAUNCH],
        ["time", *LAUNCH],
    ],
)
def test_commands_work_in_a_locale_without_unicode(arguments: list[str]) -> None:
    result = ended(*arguments, **ASCII)
    assert (result.returncode, b"Error" in result.stderr) == (0, False)
    assert result.stdout.isascii()


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "gbk", "ascii"])
def test_what_a_stream_cannot_show_is_substituted(encoding: str) -> None:
    streams.prepare_streams()
    text = "✓ 3 \u00d7 4 → 12 █ ┌─┐ 語"
    shown = text.encode(encoding, streams.HANDLER).decode(encoding)
    assert shown.startswith(("+ 3 ", "✓ 3 "))
    if encoding == "ascii":
        assert shown == "+ 3 x 4 -> 12 # +-+ \\u8a9e"


@full_disk
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", *LAUNCH, "--save", "y=full.npy"],
        ["check", *LAUNCH, "--sarif", "full.npy"],
        ["view", *LAUNCH, "--export", "full.npy"],
        ["view", *LAUNCH, "--save", "full.npy"],
        ["time", *LAUNCH, "--roofline", "full.npy"],
    ],
)
def test_a_full_disk_is_an_error_with_the_file(folder: Path, arguments: list[str]) -> None:
    (folder / "full.npy").symlink_to(FULL)
    result = ended(*arguments)
    assert result.returncode == 2
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("error: cannot write full.npy: No space left on device.")


@full_disk
def test_a_full_standard_output_is_an_error() -> None:
    result = ended("devices", shell="> /dev/full")
    assert result.returncode == 2
    assert result.stderr.startswith(b"error: cannot write standard output: No space left")
    assert ended("devices", shell="> /dev/full 2>&1").returncode == 2


@posix
@pytest.mark.parametrize("shell", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_commands_work_without_streams(folder: Path, shell: str) -> None:
    result = ended("run", *LAUNCH, "--save", "y=y.npy", shell=shell)
    assert (result.returncode, result.stderr) == (0, b"")
    assert (folder / "y.npy").read_bytes().startswith(b"\x93NUMPY")


@posix
def test_a_folder_is_no_file_to_save_to(folder: Path) -> None:
    (folder / "results").mkdir()
    result = ended("run", *LAUNCH, "--save", "y=results")
    assert result.returncode == 2
    assert b"results is a folder" in result.stderr
    assert not (folder / "results.npy").exists()


SLOW_IMPORT = """
import os, time
os.write(1, b"x")
try:
    time.sleep(100)
except KeyboardInterrupt:
    raise
"""


@posix
def test_ctrl_c_during_imports_shows_no_traceback(folder: Path) -> None:
    """A package that the commands import is replaced by one whose import lasts."""
    (folder / "typer.py").write_text(SLOW_IMPORT, "utf-8")
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(command("devices"), **pipes, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"interrupted\n")


@posix
@pytest.mark.parametrize("verb", ["run", "explore", "check"])
def test_ctrl_c_ends_an_endless_kernel_without_a_traceback(folder: Path, verb: str) -> None:
    endless = "__global__ void k(int *out) { while (true) atomicAdd(out, 1); }"
    (folder / "endless.cu").write_text(endless, "utf-8")
    line = command(verb, "endless.cu", "--arg", "i32[1]=zeros")
    with started(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.startswith(b"interrupted in kernel k(int*): check whether its loop at ")
    assert b"endless.cu:1 can end" in errors
    assert errors.count(b"\n") == 1


TEMPORARY = """
import os, sys, time
import warploom.cli.__main__ as start
sys.argv = ["warploom", "devices"]
import warploom.cli.main as main
from warploom.core.temporary import temporary_folder
def lasting():
    with temporary_folder() as folder:
        print(folder, flush=True)
        time.sleep(100)
main.main = lasting
start.main()
"""


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_leave_no_temporary_folders(name: str) -> None:
    line = [sys.executable, "-c", TEMPORARY]
    with started(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.is_dir()
        process.send_signal(signal.Signals[name])
        process.wait(60)
    assert process.returncode == -signal.Signals[name]
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
@pytest.mark.parametrize(
    ("verb", "options"), [("run", []), ("profile", []), ("view", ["--export", "page.html"])]
)
def test_names_of_files_are_any_bytes(folder: Path, verb: str, options: list[str]) -> None:
    name = os.fsdecode(b"saxpy\xff.cu")
    (folder / "saxpy.cu").rename(folder / name)
    result = ended(verb, name, *LAUNCH[1:], *options)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_wrong_address_of_a_cluster_is_an_error(folder: Path) -> None:
    pytest.importorskip("distributed")
    for address in ("127.0.0.1:1", "tcp://127.0.0.1:1", "nowhere", "127.0.0.1:99999"):
        result = ended("explore", *LAUNCH, "--cluster", address)
        assert result.returncode == 2
        assert result.stderr.startswith(
            b"error: no Dask scheduler responds at '" + address.encode()
        )
