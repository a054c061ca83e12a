"""How often the copies of a loop that ptxas unrolled are executed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from needs import NEEDS_PTXAS
from test_executed_by_hand import stretches

import warploom as wl
from warploom.machinecode.counted import MachineCounts
from warploom.machinecode.evidence import ANCHOR, Evidence
from warploom.machinecode.flow import Demands, flow_of
from warploom.machinecode.graph import Node
from warploom.machinecode.turns import Turns
from warploom.machinecode.unrolled import bypasses, uses_of
from warploom.program.program import Site


def test_entries_with_equal_turns_use_each_copy_for_what_is_left() -> None:
    """50 turns are 12 of four and one of two; 7 are one of each."""
    fifty, seven = uses_of([1, 2, 4], 10, 500, 0), uses_of([1, 2, 4], 10, 70, 0)
    assert fifty.executed == {4: 120, 2: 10, 1: 0}
    assert seven.executed == {4: 10, 2: 10, 1: 10}
    assert seven.entered == {4: 10, 2: 10, 1: 10}
    assert (fifty.turns, fifty.divergences) == (500, 0)


def test_turns_are_as_equal_as_their_sum_permits() -> None:
    """9 turns of 2 entries are 4 and 5: two of four, and one."""
    assert uses_of([4, 1], 2, 9, 0).executed == {4: 2, 1: 1}


def test_lanes_that_leave_early_do_their_last_iterations_separately() -> None:
    """Lanes of one warp do 5, 4 and 3 turns: the first two groups one of four, the third parts from
    them; of single turns the first does one, the second parts, the third does three."""
    uses = uses_of([4, 1], 1, 5, 2)
    assert uses.executed == {4: 1, 1: 3}
    assert uses.turns == 7
    assert uses.divergences == 1 + 2


def test_lanes_that_do_one_turn_are_not_left_by_others() -> None:
    """Of 8 warps 7 have two turns, in one of which some lanes do one: it uses both copies."""
    assert uses_of([4, 2, 1], 8, 15, 1).executed == pytest.approx({4: 0, 2: 7, 1: 2})


PTXAS = (
    Node(0, 3, (1, 6), leaves=False),  # any turns?
    Node(3, 5, (2, 3), leaves=False),  # four?
    Node(5, 25, (2, 3), leaves=False),
    Node(25, 27, (4, 5), leaves=False),  # two?
    Node(27, 38, (5,), leaves=False),
    Node(38, 40, (6, 7), leaves=False),  # one?
    Node(40, 46, (6, 7), leaves=False),
    Node(46, 47, (), leaves=True),
)
"""A loop as ptxas unrolls it: nodes 2, 4 and 6 do four turns, two and one."""
COPIES = {4: 2, 2: 4, 1: 6}


def test_a_loop_is_entered_by_the_test_for_its_largest_copy() -> None:
    assert list(bypasses([node.successors for node in PTXAS], COPIES)) == [(0, 6)]


def test_another_iteration_of_the_loop_around_leads_past_no_test() -> None:
    around = (*PTXAS[:-1], Node(46, 47, (0, 8), leaves=False), Node(47, 48, (), leaves=True))
    assert list(bypasses([node.successors for node in around], COPIES)) == [(0, 6)]


@pytest.mark.parametrize(
    ("turns", "executed"),
    [
        (1, (8, 8, 0, 8, 0, 8, 8, 8)),
        (2, (8, 8, 0, 8, 8, 8, 0, 8)),
        (11, (8, 8, 16, 8, 8, 8, 8, 8)),
        (12, (8, 8, 24, 8, 0, 8, 0, 8)),
    ],
)
def test_the_flow_uses_the_copies_so(turns: int, executed: tuple[int, ...]) -> None:
    """8 warps have as many turns each."""
    row = Evidence(Site("k", 1), {node: size for size, node in COPIES.items()}, ANCHOR, ANCHOR)
    uses = uses_of([*COPIES], 8, 8 * turns, 0)
    loops = (frozenset({2}), frozenset({6}))
    found = Turns(8, 8 * turns, loops, {2: 4, 6: 1}, turns > 2, COPIES, uses)
    flow = flow_of(PTXAS, [row], np.array([8.0 * turns]), Demands(8, loops=[found]))
    assert flow.executed == pytest.approx(executed)


KERNELS = """
extern "C" __global__ void rank_sort(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float own = in[i];
  int rank = 0;
  for (int j = 0; j < n; j++) {
    float other = in[j];
    if (other < own || (other == own && j < i)) rank++;
  }
  out[rank] = own;
}
extern "C" __global__ void by_lane(const int *in, int *out, int n, int more) {
  int t = threadIdx.x, sum = 0;
  for (int k = 0; k < n + more * (t % 2); k++) sum = __dp4a(in[k], in[k + 64], sum);
  out[t] = sum;
}
extern "C" __global__ void windows(
    const float *__restrict__ in, const float *__restrict__ weights, float *__restrict__ out,
    int n, int k, int height, int width
) {
  int row = threadIdx.y, col = threadIdx.x;
  if (row >= height - k || col >= width) return;
  float sum = 0;
  for (int c = 0; c < n; c++)
    for (int p = 0; p < k; p++)
      for (int q = 0; q < k; q++)
        sum += in[(c * height + row + p) * width + col + q] * weights[(c * k + p) * k + q];
  out[row * 32 + col] = sum;
}
extern "C" __global__ void remainders(unsigned long long *out, unsigned long long a, int n) {
  unsigned long long x = threadIdx.x + (a << 40);
  #pragma unroll 1
  for (int k = 0; k < n; k++) x = x * x % a;
  out[threadIdx.x] = x;
}
"""


@NEEDS_PTXAS
@pytest.mark.parametrize(
    ("n", "executed"),
    # A body with 16 loads, then one with 8 and one with 4; what is left is loaded one by one.
    [
        (16 * 3 + 8 + 4 + 3, {16: 3, 8: 1, 4: 1, 1: 3}),
        (16 * 2 + 8, {16: 2, 8: 1}),
        (16 + 4, {16: 1, 4: 1}),
    ],
)
def test_predicated_iterations_are_counted_in_the_unrolled_loop(
    n: int, executed: dict[int, int]
) -> None:
    """NVRTC unrolls the loop by four, ptxas that one by four and by two. The lines of ptxas put the
    tests and the counter of its loop under other instructions."""
    numbers = np.resize(np.arange(7, dtype=np.float32), n)
    gpu = wl.Device(cc="9.0")
    out = gpu.zeros(n, np.float32)
    run = gpu.compile(KERNELS)["rank_sort"][1, n](gpu.to_device(numbers), out, n)
    warps = -(-n // 32)
    loads = loads_by_stretch(run.machine)
    loads[1] -= warps  # each loads its own number first
    assert +loads == {size: warps * count for size, count in executed.items()}


@NEEDS_PTXAS
@pytest.mark.parametrize(
    ("more", "executed"),
    # Two loads an iteration, four iterations a turn. Even lanes do 5 turns, odd ones as many or one
    # more: a body of four turns for all; then one of two for the odd ones, one of one for the rest.
    [(0, {32: 2, 8: 2}), (4, {32: 2, 16: 2, 8: 2})],
)
def test_lanes_that_part_use_smaller_copies_beside_larger_ones(
    more: int, executed: dict[int, int]
) -> None:
    gpu = wl.Device(cc="9.0")
    out = gpu.zeros(64, np.int32)
    numbers = gpu.to_device(np.ones(256, np.int32))
    run = gpu.compile(KERNELS)["by_lane"][1, 64](numbers, out, 20, more)
    assert loads_by_stretch(run.machine) == executed


@NEEDS_PTXAS
@pytest.mark.parametrize("turns", [1, 5])
def test_a_called_routine_computes_the_remainder_of_64_bits(turns: int) -> None:
    """Each turn of 2 warps calls it, for the divisor has more than 32 bits."""
    gpu = wl.Device(cc="9.0")
    out = gpu.zeros(64, np.uint64)
    run = gpu.compile(KERNELS)["remainders"][1, 64](out, (1 << 40) + 15, turns)
    assert run.machine.by_opcode["CALL"] == 2 * turns


@NEEDS_PTXAS
@pytest.mark.parametrize(("n", "k", "loads"), [(4, 5, 8), (4, 9, 16), (3, 11, 16)])
def test_a_loop_around_copies_of_an_inner_one_has_iterations_of_its_own(
    n: int, k: int, loads: int
) -> None:
    """NVRTC unrolls the loop over q by four, ptxas that one: 5 are one of four and one, 9 are two
    of four at once. With 8 loads and more the copies outweigh the loop over p, in which they
    are."""
    gpu = wl.Device(cc="9.0")
    numbers, out = gpu.to_device(np.ones(1 << 12, np.float32)), gpu.zeros(32, np.float32)
    kernel = gpu.compile(KERNELS)["windows"]
    machine = kernel[1, 32](numbers, numbers, out, n, k, k + 1, 64).machine
    assert loads_by_stretch(machine)[loads] == n * k
    assert set(machine.by_instruction) == {0, 1, n, n * k}


def loads_by_stretch(machine: MachineCounts) -> Counter[int]:
    """Return how often stretches of straight code are executed by how many loads they have."""
    listing = machine.matching.listing
    found: Counter[int] = Counter()
    for start, stop in stretches(listing):
        loads = sum(made.name == "LDG" for made in listing.instructions[start:stop])
        if loads and machine.by_instruction[start]:
            found[loads] += machine.by_instruction[start]
    return found
