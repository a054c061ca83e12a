"""`warploom cache` lists the entries of the cache by kind, and removes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from warploom.cli.cache import cache
from warploom.llvm import disk_cache

KEYS = [disk_cache.key_of((text,)) for text in ("a", "b", "c")]


def test_entries_are_shown_by_kind_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "cache"))
    cache()
    assert "0.0 MiB used; the limit is 1,024 MiB" in capsys.readouterr().out
    for key in KEYS[:2]:
        disk_cache.store("kernel", key, bytes((1 << 20) - 32))  # a checksum of 32 bytes precedes it
    disk_cache.store("record_block", KEYS[2], bytes(1 << 20))
    other = tmp_path / "cache" / "notes.txt"
    other.write_text("not ours", "utf-8")
    cache()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["helpers", "1", "1.0"]
    assert lines[2].split()[:3] == ["kernel", "2", "2.0"]
    assert lines[-1] == f"{tmp_path / 'cache'}: 3.0 MiB used; the limit is 1,024 MiB"
    cache(empty=True)
    assert capsys.readouterr().out == f"{tmp_path / 'cache'}: 3 entries removed\n"
    assert [*other.parent.iterdir()] == [other]
