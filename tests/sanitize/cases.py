"""Kernels with what must be found in them, read from the texts in `cases/`.

A case is the body of a kernel. `// case NAME <<<grid, block>>> KINDS` begins it; lines marked
`// pass` are of its clean twin only, those marked `// fail` of the other. In the failing twin,
each finding must lie on lines that are marked `// here`, and one on all of them that can meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
HEAD = re.compile(r"// case (\w+) <<<(\d+), (\(.*\)|\d+)>>> (.*)")
N = 1024

PRELUDE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define N 1024
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" \
    :: "r"(SHARED(to)), "l"(from) : "memory")
#define MBARRIER_INIT(n) { if (i == 0) for (int k = 0; k < 16; k += 8) asm volatile( \
    "mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar + k), "r"(n) : "memory"); __syncthreads(); }
#define MBARRIER_ARRIVE(n) asm volatile( \
    "{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" :: "r"(bar) : "memory")
#define MBARRIER_WAIT_AT(at, parity) { int done = 0; while (!done) asm volatile("{ .reg .pred p; \
    mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
    : "=r"(done) : "r"(at), "r"(parity) : "memory"); }
#define MBARRIER_WAIT(parity) MBARRIER_WAIT_AT(bar, parity)
#define MBARRIER_EXPECT_AT(at, n) asm volatile( \
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(n) : "memory")
#define MBARRIER_EXPECT(n) MBARRIER_EXPECT_AT(bar, n)
#define BULK_IN_AT(at, to, from, n) asm volatile( \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" \
    :: "r"(SHARED(to)), "l"(from), "r"(n), "r"(at) : "memory")
#define BULK_IN(to, from, n) BULK_IN_AT(bar, to, from, n)
#define BULK_OUT(to, from, n) asm volatile("cp.async.bulk.global.shared::cta.bulk_group \
    [%0], [%1], %2;" :: "l"(to), "r"(SHARED(from)), "r"(n) : "memory")
#define FENCE_PROXY() asm volatile("fence.proxy.async;" ::: "memory")
__device__ unsigned of_block(unsigned at, unsigned rank) {
  unsigned found;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(at), "r"(rank));
  return found;
}
#define OTHER (b & 1 ^ 1)
#define PEER(p) cg::this_cluster().map_shared_rank(p, OTHER)
#define CLUSTER_SYNC cg::this_cluster().sync();
#define CLUSTER_ARRIVE asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#define CLUSTER_ARRIVE_RELAXED asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#define CLUSTER_WAIT asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#define ARRIVE_AT(at) asm volatile( \
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(at) : "memory")
#define WAIT_CLUSTER(parity) { int done = 0; while (!done) asm volatile("{ .reg .pred p; \
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" \
    : "=r"(done) : "r"(bar), "r"(parity) : "memory"); }
#define MULTICAST(to, from, n, mask) asm volatile("cp.async.bulk.shared::cluster.global" \
    ".mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" \
    :: "r"(SHARED(to)), "l"(from), "r"(n), "r"(bar), "h"((short)(mask)) : "memory")
"""
ATTRIBUTES = {"clusters": "__cluster_dims__(2)"}
KERNEL = (
    'extern "C" __global__ void {attributes} {name}(int *out, int *flag, int *data, int *fresh) {{'
    " const int i = threadIdx.x, b = blockIdx.x; __shared__ __align__(16) int s[N];"
    " __shared__ unsigned long long bars[2]; const unsigned bar = SHARED(bars);"
)


@dataclass(frozen=True)
class Case:
    """A kernel of a file, and the kinds of findings that it must have; none in a passing twin.
    `lines` are those of the module's text that are marked."""

    file: str
    name: str
    grid: int
    block: tuple[int, ...]
    cooperative: bool
    kinds: frozenset[str]
    lines: frozenset[int]

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


@dataclass(frozen=True)
class File:
    """All twins of a file as one text of CUDA C++."""

    text: str
    cases: tuple[Case, ...]


KINDS = (
    *("race", "same-value", "unpromised", "proxy", "out of bounds", "misaligned", "deadlock"),
    *("uninitialized read", "divergent barrier", "not a member"),
    "skipped barrier",
)


@cache
def read_cases(file: str) -> File:
    """Returns the cases of a file of `cases/`."""
    lines: list[str] = list(PRELUDE.splitlines())
    cases: list[Case] = []
    for head, body in _bodies((FOLDER / f"{file}.cu").read_text("utf-8")):
        twins = any(_marks(line) & {"pass", "fail"} for line in body)
        for twin in ("pass", "fail") if twins else ("pass",):
            name, grid, block, kinds = head
            attributes = ATTRIBUTES.get(file, "")
            lines.append(KERNEL.format(name=f"{name}_{twin}", attributes=attributes))
            marked: set[int] = set()
            for line in body:
                marks = _marks(line)
                if not marks & ({"pass", "fail"} - {twin}):
                    lines.append(line)
                    if "here" in marks:
                        marked.add(len(lines))
            lines.append("}")
            expected = {kind for kind in KINDS if re.search(rf"\b{kind}\b", kinds)}
            cases.append(
                Case(
                    file,
                    f"{name}_{twin}",
                    int(grid),
                    tuple(int(n) for n in re.findall(r"\d+", block)),
                    "cooperative" in kinds,
                    frozenset(expected if twin == "fail" else ()),
                    frozenset(marked),
                )
            )
    return File("\n".join(lines), tuple(cases))


def _bodies(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yields the head and the lines of each case of a text."""
    parts = HEAD.split(text)[1:]
    for at in range(0, len(parts), 5):
        yield tuple(parts[at : at + 4]), [line for line in parts[at + 4].splitlines() if line]


def _marks(line: str) -> set[str]:
    """Returns the marks in a line's comment."""
    return set(line.partition("// ")[2].split())
