"""Checks the cache on disk: kernels found there are not compiled again, damaged entries are."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.llvm import disk_cache
from warploom.ui.progress import progress_file

PTX = """
.version 8.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %t;
    .reg .b64 %out, %at;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out, %out, %at;
    st.global.u32 [%out], %t;
    ret;
}
"""

PROCESS = """
import logging, sys
import numpy as np
import warploom as wl
logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("warploom.compilation.emission").setLevel(logging.DEBUG)
gpu = wl.Device("a100")
out = gpu.zeros(32, np.uint32)
gpu.load(sys.argv[1])["k"][1, 32](out)
assert out.copy_to_host().tolist() == list(range(32))
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Makes an empty cache for kernels; returns a function that lists its entries. Helpers, which
    take long to compile and are not tested here, are found in the usual cache."""
    find, store = disk_cache.find, disk_cache.store
    elsewhere = disk_cache.cache_directory()

    def in_place(function):
        def called(kind, key, *content):
            folder = tmp_path if kind == "kernel" else elsewhere
            monkeypatch.setattr(disk_cache, "cache_directory", lambda: folder)
            return function(kind, key, *content)

        return called

    monkeypatch.setattr(disk_cache, "find", in_place(find))
    monkeypatch.setattr(disk_cache, "store", in_place(store))
    return lambda: sorted(tmp_path.glob("kernel-*"))


def compilations(caplog, text: str = PTX, name: str = "a100", **options) -> int:
    """Returns the number of kernels compiled for a launch on a new device; checks its results."""
    caplog.clear()
    gpu = wl.Device(name, **options)
    out = gpu.zeros(32, np.uint32)
    with caplog.at_level(logging.DEBUG, "warploom.compilation.emission"):
        gpu.compile(text, "ptx")["k"][1, 32](out)
    assert out.copy_to_host().tolist() == list(range(32))
    return sum(record.message.startswith("compiling") for record in caplog.records)


def test_a_kernel_is_compiled_once(kernels, caplog) -> None:
    assert [compilations(caplog) for _ in range(3)] == [1, 0, 0]
    assert len(kernels()) == 1


def test_a_kernel_is_found_in_another_text_of_it(kernels, caplog) -> None:
    assert compilations(caplog) == 1
    assert compilations(caplog, PTX.replace("%at, %t, 4", "%at, %t, 0x4; // bytes")) == 0
    assert compilations(caplog, PTX + ".visible .entry another()\n{\n    ret;\n}\n") == 0


def test_what_the_code_depends_on_is_in_the_key(kernels, caplog, monkeypatch) -> None:
    assert compilations(caplog) == 1
    assert compilations(caplog, name="gtx-1080") == 1
    assert compilations(caplog, schedule="random") == 1
    assert compilations(caplog, caches=True) == 1
    assert compilations(caplog, PTX.replace("%out, %out, %at", "%out, %at, %out")) == 1
    monkeypatch.setattr(disk_cache, "processor", lambda: ("another", "+features"))
    disk_cache._fingerprint.cache_clear()
    try:
        assert disk_cache.key_of(("text",)) != disk_cache.key_of(("texts",))
        another = disk_cache.key_of(("text",))
    finally:
        monkeypatch.undo()
        disk_cache._fingerprint.cache_clear()
    assert another != disk_cache.key_of(("text",))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    ],
)
def test_a_damaged_entry_is_replaced(kernels, caplog, damage) -> None:
    compilations(caplog)
    [entry] = kernels()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    assert compilations(caplog) == 1
    assert len(kernels()[0].read_bytes()) == len(whole)
    assert compilations(caplog) == 0


def test_two_processes_at_once_and_one_after_them(tmp_path: Path) -> None:
    source = tmp_path / "kernel.ptx"
    source.write_text(PTX, "utf-8")
    command = [sys.executable, "-c", PROCESS, str(source)]
    cache = {**os.environ, "WARPLOOM_CACHE_DIR": str(tmp_path / "cache")}
    both = [
        subprocess.Popen(command, env=cache, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    outputs = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    # One may begin after the other has stored the code.
    assert any("compiling" in output for output in outputs)
    done = subprocess.run(command, env=cache, capture_output=True, text=True, check=True)
    assert "compiling" not in done.stdout


def test_the_cache_stays_within_its_bound(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"kernel-{number}").write_bytes(bytes(100))
    for number in (3, 1, 0, 4, 2):
        (tmp_path / f"kernel-{number}").touch()
    disk_cache._remove_oldest(tmp_path, 250)
    assert sum(entry.stat().st_size for entry in tmp_path.iterdir()) <= 250


def test_writing_keeps_the_cache_near_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "MOST_BYTES", 10_000)
    for number in range(2000):
        disk_cache.store("thing", f"{number:x}", bytes(100))
    # Names are spread evenly: ten times as many writes as there are to a sweep have one.
    held = sum(entry.stat().st_size for entry in (tmp_path / "cache").iterdir())
    assert held <= 10_000 + 10 * disk_cache.WRITES_PER_CLEANUP * 132 < 2000 * 132


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch, caplog) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", "utf-8")
    find = disk_cache.find
    monkeypatch.setattr(
        disk_cache, "find", lambda kind, key: None if kind == "kernel" else find(kind, key)
    )
    store = disk_cache.store

    def store_nowhere(kind: str, key: str, content: bytes) -> None:
        with monkeypatch.context() as changed:
            changed.setattr(disk_cache, "cache_directory", lambda: blocked)
            store(kind, key, content)

    monkeypatch.setattr(disk_cache, "store", store_nowhere)
    assert compilations(caplog) == 1


def test_an_entry_whose_time_cannot_be_set_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of use cannot be set in a read-only layer of a container image, for example."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    disk_cache.store("thing", "key", b"content")

    def refuse(_: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(disk_cache.os, "utime", refuse)
    assert disk_cache.find("thing", "key") == b"content"


def test_a_new_folder_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    before = os.umask(0)
    try:
        disk_cache.store("thing", "key", b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    [entry] = (tmp_path / "cache").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("open_to_others", ["folder", "entry"])
def test_what_others_can_write_is_not_executed(
    open_to_others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    disk_cache.store("thing", "key", b"content")
    [entry] = (tmp_path / "cache").iterdir()
    target = entry if open_to_others == "entry" else entry.parent
    target.chmod(target.stat().st_mode | 0o002)
    with pytest.warns(UserWarning, match="other users can write"):
        assert disk_cache.find("thing", "key") is None
    if open_to_others == "folder":
        disk_cache.store("thing", "other", b"content")
        assert [*entry.parent.iterdir()] == [entry]


@pytest.mark.skipif(os.name != "posix", reason="entries of POSIX")
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_no_entry(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    disk_cache.store("thing", "key", b"content")
    [entry] = (tmp_path / "cache").iterdir()
    entry.unlink()
    if kind == "pipe":
        os.mkfifo(entry, 0o600)
    elif kind == "folder":
        entry.mkdir(0o700)
    else:
        entry.symlink_to("/dev/zero")
    assert disk_cache.find("thing", "key") is None
    assert not disk_cache.sizes()
    disk_cache.store("thing", "key", b"content")
    assert not [*entry.parent.glob("*.new")]
    assert disk_cache.find("thing", "key") == (None if kind == "folder" else b"content")


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    """A limit of the size of files fails writes, as a full disk does."""
    code = (
        "import resource, signal\n"
        "from warploom.llvm import disk_cache\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "disk_cache.store('thing', 'key', bytes(1000))\n"
    )
    environment = {**os.environ, "WARPLOOM_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(os.name != "posix", reason="owners of POSIX")
def test_the_advice_fits_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", "/dev/null")
    with pytest.warns(UserWarning, match=r"/dev/null is not used .*: it is not a folder;") as found:
        disk_cache.find("thing", "key")
    assert "chmod" not in str(found[0].message)
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid:
        with pytest.warns(UserWarning, match="belongs to another user"):
            disk_cache.find("thing", "key")


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("WARPLOOM_CACHE_DIR", "XDG_CACHE_HOME", "WARPLOOM_DATA_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert disk_cache.cache_directory().name == "warploom"
    assert progress_file().name == "progress.json"
