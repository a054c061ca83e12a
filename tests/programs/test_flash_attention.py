"""Attention in the style of FlashAttention-3 (`flash_attention.cu`), against NumPy: right under
every schedule. Twins of it without one of its waits or fences are wrong where nothing completes
early, or have a race.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl

pytestmark = pytest.mark.nightly  # compiling it for a schedule takes 10 to 20 s

TEXT = (Path(__file__).parent / "flash_attention.cu").read_text("utf-8")
ROWS, KEYS, DEPTH, THREADS = 128, 64, 64, 384
TILE_BYTES, BARRIERS = KEYS * DEPTH * 2, 9
SHARED_BYTES = (2 + 2 * 2) * TILE_BYTES + 8 * BARRIERS


WAIT_FOR_V = "wait(&in.full_v[now], (tile - 1) / STAGES % 2);"
TWINS = {
    "an empty stage": ("wait(&to.empty_k[stage], parity);", ""),
    "V": (WAIT_FOR_V, ""),
    "the right phase of V": (WAIT_FOR_V, "wait(&in.full_v[now], (tile - 1) / STAGES % 2 ^ 1);"),
    "all bytes of Q": ("expect(&to.full_q, 2 * TILE);", "expect(&to.full_q, TILE);"),
    "the scores": ("wait_products<1>(s);", ""),
    "the values": ("wait_products<0>(o);\n        keep(p);", ""),
    "the end of the registers of P": ("keep(p);", ""),
    "a fence between proxies": (
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
        "",
    ),
}
"""What a twin does not wait for: the statement, and what it has in its place."""


def source(twin: str | None) -> str:
    """Return the kernel, or a twin of it."""
    text = TEXT
    if twin is not None:
        old, new = TWINS[twin]
        assert text.count(old) == 1
        text = text.replace(old, new)
    registers = re.sub(
        r"REGISTERS\((\w+)\)",
        lambda found: ", ".join(f'"+f"({found[1]}[{i}])' for i in range(32)),
        text,
    )
    return registers.replace("OUTPUTS", ", ".join(f"%{i}" for i in range(32)))


def attention(
    gpu: wl.Device, twin: str | None = None, causal: int = 0, rows: int = ROWS, **options: Any
) -> tuple[wl.Run, float]:
    """Run the kernel for two heads; return the run, and its greatest error."""
    random = np.random.default_rng(0)
    heads, depth = 2, DEPTH
    q, k, v = (random.standard_normal((heads, rows, depth)).astype(np.float16) for _ in range(3))
    out = gpu.zeros((heads, rows, depth), np.float16)
    buffers = [*map(gpu.to_device, (q, k, v)), out]
    maps = [gpu.tensor_map(each, (1, KEYS, DEPTH), swizzle="128B") for each in buffers]
    flags = ["--gpu-architecture=sm_90a", f"-DCAUSAL={causal}"]
    kernel = gpu.compile(source(twin), options=flags)["attention"]
    scale = np.float32(np.log2(np.e) / np.sqrt(depth))
    launch = kernel[(rows // ROWS, heads), THREADS, None, SHARED_BYTES]
    run = launch(*maps, scale, rows, **options)

    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / np.sqrt(depth)
    if causal:
        scores[:, np.triu(np.ones((rows, rows), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    right = weights @ v.astype(np.float64) / weights.sum(axis=2, keepdims=True)
    return run, np.abs(out.copy_to_host() - right).max()


CLOSE = 2e-3
"""Weights are rounded to 11 bits before they are multiplied, and so is the result; values are below
4, and weights add up to 1."""


@pytest.mark.parametrize(
    ("engine", "schedule"),
    [
        ("compiled", "converge"),
        ("compiled", "fair"),
        ("compiled", "random"),
        ("compiled", "adversarial"),
        ("reference", "converge"),
    ],
)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(engine: str, schedule: str, causal: int) -> None:
    rows = 2 * ROWS if engine == "compiled" else ROWS
    for seed in range(4 if schedule == "random" else 1):
        gpu = wl.Device("h100", engine=engine, schedule=schedule, seed=seed)
        _, error = attention(gpu, causal=causal, rows=rows)
        assert error < CLOSE


LATE = ("V", "all bytes of Q", "the scores", "the values", "the end of the registers of P")


@pytest.mark.parametrize("twin", LATE)
def test_a_twin_is_wrong_where_nothing_completes_early(twin: str) -> None:
    _, error = attention(wl.Device("h100", schedule="adversarial"), twin, rows=2 * ROWS)
    assert error > 0.05


@pytest.mark.parametrize("twin", ["the right phase of V", "an empty stage"])
def test_a_twin_is_a_deadlock_where_nothing_completes_early(twin: str) -> None:
    with pytest.raises(wl.DeadlockError, match=r"flash_attention|kernel\.cu"):
        attention(wl.Device("h100", schedule="adversarial"), twin, rows=4 * ROWS)


LOAD, STORE = "cp.async.bulk.tensor.3d.shared", "(__half2 *)(to"
RACES = {
    "an empty stage": LOAD,
    "V": LOAD,
    "all bytes of Q": LOAD,
    "a fence between proxies": STORE,
}
"""Twins that have a race, and one of the two statements of it."""


@pytest.mark.parametrize("twin", [None, *RACES])
def test_races_are_found(twin: str | None) -> None:
    run, _ = attention(wl.Device("h100"), twin, rows=4 * ROWS, sanitize=("race",))
    ends = {str(line) for found in run.findings for line in (found.line, found.other_line)}
    if twin is None:
        assert not ends
    else:
        [line] = [n for n, text in enumerate(TEXT.splitlines(), 1) if RACES[twin] in text][:1]
        assert any(end.endswith(f":{line}") for end in ends), ends
