"""Tests that a replay that was stopped, saved and resumed ends like one that was not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parts import some_now
from test_accounts import TWO, balanced

import warploom as wl
from warploom.core.errors import WarploomError
from warploom.timing import saved
from warploom.timing.records import SmState
from warploom.timing.result import Timing
from warploom.timing.saved import ReplayState

N = 1 << 16


def launched(device: str = "v100") -> wl.Run:
    gpu = wl.Device(device, record=True)
    x, y = gpu.zeros(N, np.float32), gpu.zeros(1, np.float32)
    return gpu.compile(TWO)["k"][N // 256, 256](x, y, N)


def same(one: Timing, other: Timing) -> None:
    assert one.cycles == other.cycles
    assert one.stalls == other.stalls
    assert one.by_line() == other.by_line()
    assert one.dram_bytes == other.dram_bytes
    for sm in range(one.sms):
        assert one.timeline(sm) == other.timeline(sm)


@pytest.mark.parametrize("device", some_now(["v100", "gtx-480"], 2))
def test_resumed_replay_ends_like_uninterrupted_one(device: str, tmp_path: Path) -> None:
    """Saves it every few hundred cycles; another replay with other workers resumes."""
    run = launched(device)
    whole, stops = run.time(timeline=4000), 0
    replaying = run.replay(timeline=4000)
    while replaying.advance(replaying.now + 300):
        replaying.state.save(tmp_path / "state.npz")
        replaying = launched(device).replay(timeline=4000, workers=1 + stops % 2)
        replaying.restore(ReplayState.load(tmp_path / "state.npz"))
        stops += 1
    assert stops > 3
    same(replaying.time(), whole)
    balanced(replaying.time())


def test_state_of_an_older_version_has_no_slots() -> None:
    """Its SMs end before the word for the slots that other kernels leave, and are padded with 0."""
    run = launched("gtx-480")
    whole, replaying = run.time(), run.replay()
    replaying.advance(600)
    state = replaying.state
    state.sms[:, SmState.block_slots] = 0
    resumed = run.replay()
    resumed.restore(state)
    same(resumed.time(), whole)


def test_state_of_an_older_version_lacks_the_newest_parameters() -> None:
    """Those of translation, of combined loads and of atomics are 0 on devices without such
    figures."""
    run = launched("gtx-480")
    whole, replaying = run.time(), run.replay()
    replaying.advance(600)
    state = replaying.state
    checksums = state.fingerprint.copy()
    checksums[1] += 1
    resumed = run.replay()
    resumed.restore(replace(state, parameters=state.parameters[:-7], fingerprint=checksums))
    same(resumed.time(), whole)
    on_hopper = launched("h100").replay()
    hopper_state = on_hopper.state
    with pytest.raises(WarploomError, match="belongs to another replay"):
        on_hopper.restore(replace(hopper_state, parameters=hopper_state.parameters[:-7]))


def test_state_is_a_copy() -> None:
    """Running on does not change a state."""
    run = launched()
    replaying = run.replay()
    replaying.advance(1500)
    state = replaying.state
    at, first = replaying.now, replaying.time()
    assert (state.now, state.now < first.cycles) == (at, True)
    again = run.replay()
    again.restore(state)
    same(again.time(), first)


def test_state_of_another_replay_is_refused(tmp_path: Path) -> None:
    replaying = launched().replay()
    replaying.advance(1000)
    state = replaying.state
    with pytest.raises(WarploomError, match="another replay"):
        launched().replay(scheduler="gto").restore(state)
    with pytest.raises(WarploomError, match="another replay"):
        launched("a100").replay().restore(state)
    (tmp_path / "none.npz").write_bytes(b"nothing")
    with pytest.raises(WarploomError, match="not a valid replay state"):
        ReplayState.load(tmp_path / "none.npz")


def test_state_with_the_names_of_older_files_is_loaded(tmp_path: Path) -> None:
    names = ("parameters", "of_what", "sms", "memory", "totals", "ends", "dealt")
    arrays: Any = {name: np.full(2, number) for number, name in enumerate(names)}
    np.savez(tmp_path / "state.npz", now=7, **arrays)
    state = ReplayState.load(tmp_path / "state.npz")
    assert state.now == 7
    assert state.fingerprint.tolist() == [1, 1]
    assert state.dispatcher_state.tolist() == [6, 6]


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"\x93NUMPY", bytes(100)])
def test_file_that_is_no_state_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(WarploomError, match="not a valid replay state"):
        ReplayState.load(path)


def test_state_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BYTES", 1000)
    ReplayState(7, *[np.arange(100, dtype=np.int64)] * 7).save(tmp_path / "state.npz")
    with pytest.raises(WarploomError, match="but the limit is 1,000"):
        ReplayState.load(tmp_path / "state.npz")


def test_damaged_state_is_refused(tmp_path: Path) -> None:
    """Bits flipped all over the file, other types, parts that are missing."""
    words = np.arange(100, dtype=np.int64)
    path, refused = tmp_path / "state.npz", 0
    ReplayState(7, *[words] * 7).save(path)
    data = path.read_bytes()
    for at in range(0, len(data), 50):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        path.write_bytes(bytes(broken))
        try:
            ReplayState.load(path)
        except WarploomError:
            refused += 1
    assert refused > 10
    np.savez(path, now=words[:1])
    with pytest.raises(WarploomError, match="not a valid replay state"):
        ReplayState.load(path)
    floats: Any = {name: np.ones(2) for name in ReplayState.__dataclass_fields__}
    np.savez(path, **floats)
    with pytest.raises(WarploomError, match="64-bit integers"):
        ReplayState.load(path)
