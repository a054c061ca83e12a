"""Toolkits made of NVIDIA's wheels where the cache cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warploom.clients.toolkit import front_toolkit
from warploom.core.user_folders import temporary_folder


def test_a_toolkit_is_made_without_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(file / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    toolkit = front_toolkit()
    assert toolkit.is_relative_to(tmp_path)
    assert (toolkit / "bin" / "nvcc").exists()
    assert front_toolkit() == toolkit


def test_headers_of_a_wheel_that_is_installed_later_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("warploom.clients.toolkit._roots", lambda: [tmp_path])
    (tmp_path / "include").mkdir()
    before = front_toolkit()
    os.utime(tmp_path / "include", ns=(0, 0))
    (tmp_path / "include" / "curand_kernel.h").touch()
    assert not (before / "include" / "curand_kernel.h").exists()
    assert (front_toolkit() / "include" / "curand_kernel.h").exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no modes of folders")
def test_a_folder_that_others_can_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = temporary_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="other users"):
        temporary_folder()
