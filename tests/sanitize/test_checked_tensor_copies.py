"""Copies of tensors under the race detector: what is waited for, fenced and kept is clean, and what
is not is found at its two lines. Each kernel has a wrong and a right twin."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import numpy as np
import pytest

import warploom as wl
from warploom.sanitize.findings import TOOLS, Finding

SIDE = 16
PRELUDE = r"""
struct alignas(64) Map { char bytes[128]; };
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
#define LOAD(to, map, x, y) asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global" \
    ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" \
    :: "r"(SHARED(to)), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory")
#define STORE(map, x, y, from) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile" \
    ".bulk_group [%0, {%1, %2}], [%3];" \
    :: "l"(&map), "r"(x), "r"(y), "r"(SHARED(from)) : "memory")
#define REDUCE(map, x, y, from) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta" \
    ".add.tile.bulk_group [%0, {%1, %2}], [%3];" \
    :: "l"(&map), "r"(x), "r"(y), "r"(SHARED(from)) : "memory")
#define COMMIT asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define WAIT_READ asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define WAIT_WRITTEN asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define EXPECT(n) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" \
    :: "r"(bar), "r"(n) : "memory")
#define WAIT(parity) { int done = 0; while (!done) asm volatile("{ .reg .pred p;" \
    "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
    : "=r"(done) : "r"(bar), "r"(parity) : "memory"); }
#define FENCE_PROXY asm volatile("fence.proxy.async;" ::: "memory")
#define BYTES 1024
"""
KERNEL = r"""extern "C" __global__ void {name}(const __grid_constant__ Map from,
    const __grid_constant__ Map to, int *out) {{
  const int i = threadIdx.x; __shared__ alignas(128) int s[512];
  __shared__ unsigned long long word; const unsigned bar = SHARED(&word);
  if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
  __syncthreads();
"""
CASES = r"""
// case load_without_a_wait race
if (i == 0) { EXPECT(BYTES); }
if (i == 0) LOAD(s, from, 0, 0);  // here
WAIT(0)  // pass
out[i] = s[i];  // here

// case wrong_parity deadlock
if (i == 0) { EXPECT(BYTES); LOAD(s, from, 0, 0); }
WAIT(0)  // pass
WAIT(1)  // fail here
out[i] = s[i];

// case bytes_of_one_box_for_two race
if (i == 0) { EXPECT(2 * BYTES); }  // pass
if (i == 0) { EXPECT(BYTES); }  // fail
if (i == 0) LOAD(s, from, 0, 0);
if (i == 0) LOAD(s + 256, from, 0, 0);  // here
WAIT(0)
out[i] = s[256 + i];  // here

// case box_over_what_is_still_read race
if (i >= 32) return;
if (i == 0) { EXPECT(BYTES); LOAD(s, from, 0, 0); }
WAIT(0)
out[i] = s[i];  // here
__syncwarp();  // pass
if (i == 0) { EXPECT(BYTES); }
if (i == 0) LOAD(s, from, 0, 0);  // here

// case two_boxes_in_one_place race
if (i == 0) { EXPECT(2 * BYTES); }
if (i == 0) LOAD(s, from, 0, 0);  // here
if (i == 0) LOAD(s, from, 0, 0);  // fail here
if (i == 0) LOAD(s + 256, from, 0, 0);  // pass
WAIT(0)

// case source_of_a_store_reused race
if (i == 0) {
  STORE(to, 0, 0, s);  // here
  COMMIT;
  WAIT_READ;  // pass
  s[3] = 1;  // here
}

// case store_before_the_barrier race
s[i] = i;  // here
FENCE_PROXY;
__syncthreads();  // pass
if (i == 0) { FENCE_PROXY; }
if (i == 0) STORE(to, 0, 0, s);  // here
if (i == 0) { COMMIT; WAIT_READ; }

// case store_of_plain_writes proxy
s[i] = i;  // here
FENCE_PROXY;  // pass
__syncthreads();
if (i == 0) STORE(to, 0, 0, s);  // here
if (i == 0) { COMMIT; WAIT_READ; }

// case blocks_store_one_box race
if (i == 0) STORE(to, 0, 0, s);  // fail here
if (i == 0) STORE(to, 0, 16 * blockIdx.x, s);  // pass
if (i == 0) { COMMIT; WAIT_READ; }

// case store_of_what_was_loaded race
if (i == 0) { EXPECT(BYTES); }
if (i == 0) LOAD(s, from, 0, 0);  // here
WAIT(0)  // pass
if (i == 0) STORE(to, 0, 0, s);  // here
if (i == 0) { COMMIT; WAIT_READ; }

// case sums_of_blocks_in_one_box race
if (i == 0) REDUCE(to, 0, 0, s);  // here
if (i == 0 && blockIdx.x) STORE(to, 0, 0, s);  // fail here
if (i == 0) { COMMIT; WAIT_READ; }

// case sum_of_a_box_loaded_too_early race
if (i == 0) { EXPECT(BYTES); }
if (i == 0) REDUCE(to, 0, 0, s + 256);  // here
if (i == 0) { COMMIT; }
if (i == 0) { WAIT_WRITTEN; }  // pass
if (i == 0) LOAD(s, to, 0, 0);  // here
WAIT(0)

// case source_of_a_sum_reused race
if (i == 0) {
  REDUCE(to, 0, 0, s);  // here
  COMMIT;
  WAIT_READ;  // pass
  s[3] = 1;  // here
}

// case sum_of_plain_writes proxy
s[i] = i;  // here
FENCE_PROXY;  // pass
__syncthreads();
if (i == 0) REDUCE(to, 0, 0, s);  // here
if (i == 0) { COMMIT; WAIT_READ; }
"""
HEAD = re.compile(r"// case (\w+) (\w+)\n")


def twins() -> tuple[str, dict[str, tuple[str, set[int]]]]:
    """Returns the text of all kernels; of each the kind that it must have, and its lines."""
    lines, cases = PRELUDE.splitlines(), dict[str, tuple[str, set[int]]]()
    parts = HEAD.split(CASES)[1:]
    for name, kind, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        for twin, other in (("pass", "fail"), ("fail", "pass")):
            lines += KERNEL.format(name=f"{name}_{twin}").splitlines()
            marked = set[int]()
            for line in body.strip().splitlines():
                marks = line.partition("// ")[2].split()
                if other not in marks:
                    lines.append(line)
                    if "here" in marks:
                        marked.add(len(lines))
            lines.append("}")
            cases[f"{name}_{twin}"] = (kind if twin == "fail" else "", marked)
    return "\n".join(lines), cases


TEXT, KINDS = twins()


@cache
def loaded(engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100", engine=engine)
    return gpu, gpu.compile(TEXT, name="boxes.cu")


def findings(engine: str, name: str) -> tuple[Finding, ...]:
    gpu, module = loaded(engine)
    content = np.arange(2 * SIDE * SIDE, dtype=np.int32).reshape(2 * SIDE, SIDE)
    tensors = [gpu.to_device(content, side) for side in ("from", "to")]
    maps = [gpu.tensor_map(tensor, (SIDE, SIDE)) for tensor in tensors]
    blocks = 2 if "blocks" in name else 1
    out = gpu.zeros(64, np.int32, "out")
    run = module[name][blocks, 64](*maps, out, sanitize=TOOLS, max_instructions=100_000)
    return run.findings


SLOW = ("reference", "wrong_parity_fail")
"""A deadlock takes the reference machine half a minute."""


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(*pair, marks=[pytest.mark.nightly] if pair == SLOW else [])
        for pair in product(("compiled", "reference"), KINDS)
    ],
)
def test_boxes(engine: str, name: str) -> None:
    kind, lines = KINDS[name]
    found = [one for one in findings(engine, name) if one.kind != "uninitialized read"]
    shown = "\n".join(map(str, found))
    assert {one.kind for one in found} == ({kind} if kind else set()), shown
    places = {int(p.rpartition(":")[2]) for one in found for p in (one.line, one.other_line) if p}
    assert places == (lines if kind else set()), shown
