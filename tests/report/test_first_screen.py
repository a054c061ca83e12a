"""Findings on the first screen: what they name, what they gain by the modelled bound, and which are
left out. The figures are worked out by hand for an H100: 132 SMs with 4 schedulers each, 64 warps
and 32 blocks on an SM at most, 1.98 GHz."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.report.ceilings import ceilings
from warploom.report.render import Parts, render_text
from warploom.report.sections import Report
from warploom.report.verdict import NOTHING_FOUND, verdict

SOURCE = """
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL __launch_bounds__(1024) iterate(const float *in, float *out, int n) {
    int i = I;
    if (i >= n) return;
    float v = in[i];
    for (int k = 0; k < 400; k++) v = v * 1.0001f + 0.5f;
    out[i] = v;
}
KERNEL mix(const float *x, float *y, int n) {
    int i = I;
    float part[96];
#pragma unroll
    for (int k = 0; k < 96; k++)
        part[k] = x[i + k * n];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 95; k >= 0; k--)
        sum = sum * 0.5f + part[k];
    y[i] = sum;
}
KERNEL by_unit(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    if (threadIdx.x % 2 == 0) {
        for (int k = 0; k < 64; k++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    } else {
        for (int k = 0; k < 64; k++) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    }
    out[i] = x;
}
KERNEL by_parity(const float *in, float *out) {
    float v = in[I];
    if (threadIdx.x % 2 == 0) {
        for (int k = 0; k < 50; k++) v = v * 1.5f + 0.25f;
    } else {
        for (int k = 0; k < 50; k++) v = v / (v + 2.0f);
    }
    out[I] = v;
}
KERNEL by_value(const float *in, float *out) {
    float v = in[I];
    if (v > 0) {
#pragma unroll 1
        for (int k = 0; k < 50; k++) v = v * 1.5f + 0.25f;
    }
    out[I] = v;
}
KERNEL serial(const float *in, float *out) {
    __shared__ float values[256];
    values[threadIdx.x] = in[I];
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0;
        for (int k = 0; k < 256; k++) s += values[k];
        out[blockIdx.x] = s;
    }
}
KERNEL count(const int *in, int *total, int n) {
    int i = I;
    if (i < n && in[i] > 0)
        atomicAdd(total, in[i]);
}
KERNEL count_all(const int *in, int *total) { atomicMax(total, in[I]); }
KERNEL tally(const int *in, int *bins) { atomicAdd(&bins[in[I] & 7], 1); }
KERNEL flip(const float *in, float *out, int n) { out[I] = in[n - 1 - I]; }
KERNEL scale_all(float *data, volatile float *scale, int n) {
    int i = I;
    for (int k = 0; k < 64; k++)
        data[k * n + i] *= *scale;
}
KERNEL filter(const float *in, float *out) {
    __shared__ float window[12288];
    window[threadIdx.x] = in[I];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 8; k++)
        sum += window[(threadIdx.x + k) % blockDim.x];
    out[I] = sum;
}
KERNEL sort_own(const int *in, int *out, int n) {
    int i = I;
    int values[32];
    for (int k = 0; k < 32; k++) values[k] = in[k * n + i];
    for (int a = 1; a < 32; a++) {
        int v = values[a], b = a - 1;
        while (b >= 0 && values[b] > v) { values[b + 1] = values[b]; b--; }
        values[b + 1] = v;
    }
    for (int k = 0; k < 32; k++) out[k * n + i] = values[k];
}
KERNEL product(const float *a, const float *b, float *c, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0;
    for (int k = 0; k < n; k++)
        s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
struct Particle { float x, y, z, vx, vy, vz, mass, charge; };
KERNEL move(Particle *p, float dt) {
    int i = I;
    p[i].x += p[i].vx * dt;
}
KERNEL add_one(float *x, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] += 1.0f;
}
KERNEL axpy(const float4 *x, float4 *y, float a) {
    float4 u = x[I], v = y[I];
    v.x += a * u.x; v.y += a * u.y; v.z += a * u.z; v.w += a * u.w;
    y[I] = v;
}
KERNEL histogram(const unsigned *in, unsigned *out) {
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[I] >> 28], 1u);
    __syncthreads();
    if (threadIdx.x < 16) out[blockIdx.x * 16 + threadIdx.x] = bins[threadIdx.x];
}
KERNEL shade(const int *kind, const float *in, float *out) {
    float v = in[I];
    switch (kind[I] & 3) {
    case 0: for (int k = 0; k < 40; k++) v = sinf(v) + 0.1f; break;
    case 1: for (int k = 0; k < 40; k++) v = v * v - 0.3f; break;
    case 2: for (int k = 0; k < 40; k++) v = sqrtf(v + 1.0f); break;
    default: v = 0;
    }
    out[I] = v;
}
KERNEL pairs(const float *in, float *out) {
    __shared__ float buf[512];
    buf[threadIdx.x] = in[I];
    buf[threadIdx.x + 256] = in[I];
    __syncthreads();
    float s = 0;
    for (int k = 0; k < 64; k++) s += buf[(2 * threadIdx.x + k * 32) & 511] * k;
    out[I] = s;
}
KERNEL lookup(const int *in, float *out) {
    float table[8] = {0.1f, 0.4f, 0.2f, 0.9f, 0.7f, 0.3f, 0.8f, 0.5f};
    float s = 0;
    int v = in[I];
    for (int k = 0; k < 8; k++) s += table[(v >> (3 * k)) & 7];
    out[I] = s;
}
KERNEL dot_by_warp(const float *a, float *out) {
    float s = a[I];
    for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, s);
}
KERNEL grey(const unsigned char *rgb, unsigned char *out) {
    int i = I;
    out[i] = (rgb[3 * i] * 77 + rgb[3 * i + 1] * 150 + rgb[3 * i + 2] * 29) >> 8;
}
KERNEL interleaved_sum(const float *in, float *out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[I];
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        if (t % (2 * s) == 0) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}
KERNEL steps(float *x, int n) {
    int i = I;
    for (int k = 0; k < 100; k++) {
        if (i < n) x[i] = x[i] * 0.5f + 1.0f;
        __syncthreads();
    }
}
KERNEL interleave(const float *a, const float *b, float *out) {
    int i = I;
    out[2 * i] = a[i];
    out[2 * i + 1] = b[i];
}
KERNEL nine(const float *in, float *out, int w) {  // blocks of 16: a warp has two rows
    int i = (blockIdx.y * blockDim.y + threadIdx.y + 1) * w
        + blockIdx.x * blockDim.x + threadIdx.x + 1;
    out[i] = in[i - w - 1] + in[i - w] + in[i - w + 1] + in[i - 1] + in[i + 1];
}
KERNEL tree_sum(const float *in, float *out) {
    __shared__ float tree[512];
    for (int i = threadIdx.x; i < 512; i += 256) tree[i] = in[blockIdx.x * 512 + i];
    for (int step = 1; step < 512; step *= 2) {
        __syncthreads();
        int b = (threadIdx.x + 1) * 2 * step - 1;
        if (b < 512) tree[b] += tree[b - step];
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = tree[511];
}
KERNEL runs(const unsigned char *in, int *out, int n) {
    int i = I, end = i;
    while (end < n && in[end] == in[i]) end++;
    out[i] = end - i;
}
KERNEL encode(const float *in, float *out) {
    float y = in[I] * 1.5f, s;
    if (y < 0.003)
        s = 12.92 * y;
    else
        s = 1.055 * pow((double)y, 1.0 / 2.4) - 0.055;
    out[I] = s;
}
KERNEL tone(const unsigned char *rgb, unsigned char *out) {
    int i = I;
    float v = rgb[3 * i] * 0.3f + rgb[3 * i + 1] * 0.6f + rgb[3 * i + 2] * 0.1f;
    for (int k = 0; k < 64; k++) v = v * 0.99f + 0.5f;
    out[i] = v;
}
KERNEL lengths(const float3 *p, float *out) {
    float3 v = p[I];
    out[I] = sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
}
KERNEL wrap(const float *in, float *out, int w) {
    int i = I;
    float s = 0;
    for (int k = 0; k < 16; k++)
        s += in[(i + k * 64) % w];
    out[i] = s;
}
KERNEL split(const float *in, float *out, int w) { out[I] = in[I % w]; }
KERNEL matvec(const float *m, const float *v, float *out, int n) {
    int row = I;
    float s = 0;
    for (int k = 0; k < n; k++) s += m[row * n + k] * v[k];
    out[row] = s;
}
KERNEL pick(const float *table, const int *index, float *out) { out[I] = table[index[I]]; }
KERNEL decay(const int *lengths, const float *in, float *out) {
    int i = I, end = lengths[i] & 127;
    float s = in[i];
    for (int k = 0; k < end; k++) s = s * 0.99f + 0.25f;
    out[i] = s;
}
KERNEL from_end(const int *lengths, const float *in, float *out) {
    int i = I, end = lengths[i] & 127;
    float s = 0;
    for (int k = 0; k < end; k++) s = in[i + k] - s;
    out[i] = s;
}
KERNEL gather_max(const int *lengths, const float *in, float *out) {
    int i = I, end = lengths[i] & 127;
    float s = 0;
    for (int k = 0; k < end; k++) s = fmaxf(s, in[i + k] * 0.5f);
    out[i] = s;
}
KERNEL gather_sum(const int *lengths, const float *in, float *out) {
    int i = I, end = lengths[i] & 127;
    float s = 0;
    for (int k = 0; k < end; k++) s += in[i + k] * 0.5f;
    out[i] = s;
}
KERNEL up_sweep(const float *in, float *out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = in[I];
    __syncthreads();
    for (int s = 1; s < 256; s *= 2) {
        if (t % (2 * s) == 0) part[t + 2 * s - 1] += part[t + s - 1];
        __syncthreads();
    }
    out[I] = part[t];
}
#define TILE 32
KERNEL turn(const float *in, float *out) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * 1024 + x];
    __syncthreads();
    out[(blockIdx.x * TILE + threadIdx.y) * 1024 + blockIdx.y * TILE + threadIdx.x] =
        tile[threadIdx.x][threadIdx.y];
}
""".replace("KERNEL", 'extern "C" __global__ void')


@cache
def module() -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100")
    file = Path(tempfile.mkdtemp()) / "screen.cu"  # findings show its lines
    file.write_text(SOURCE, encoding="utf-8")
    return gpu, gpu.load(file)


def ones(count: int) -> wl.Buffer:
    return module()[0].to_device(np.ones(count, np.float32))


def integers(count: int) -> wl.Buffer:
    return module()[0].to_device(np.arange(count, dtype=np.int32))


def report(name: str, grid: object, block: object, *args: object) -> Report:
    return module()[1][name][grid, block](*args).summary  # pyright: ignore[reportArgumentType]


def screen(made: Report) -> str:
    """Returns a first screen as one line of text."""
    return " ".join(render_text(made, parts=Parts(details=False)).split())


@cache
def tail() -> Report:
    n = 265 * 1024
    return report("iterate", 265, 1024, ones(n), ones(n), n)


def test_the_remedy_for_a_tail_is_a_launch_that_was_calculated() -> None:
    """271,360 elements: 265 blocks on 264 places, so that one SM has 3 blocks of 1,024. In blocks
    of 64 threads with 2 elements each, 2,120 blocks are 16.06 on each of 132 SMs: at most 17 of the
    32 that an SM holds, 2,176 elements instead of 3,072. With 1 element per thread, any block size
    has a second wave, since 132 SMs hold 270,336 threads."""
    [found] = [one for one in tail().advice if one.rule == "tail effect"]
    assert "265 blocks run in 2 waves of 264" in found.evidence
    assert found.text.startswith("Use blocks of 64 threads, and process 2 elements per thread")
    assert "2,120 blocks, at most 17 on an SM, all in one wave" in found.text
    run = module()[1]["iterate"]
    assert run[2120, 64](ones(135680), ones(135680), 135680).occupancy.active_blocks == 32


def test_the_bound_has_the_time_of_the_sm_with_most_blocks() -> None:
    """The instructions of 3 blocks of 32 warps on one SM, not of 265 / 132."""
    [issued] = [one for one in ceilings(tail()) if one.part == "instructions"]
    assert tail().work is not None
    each = tail().work.issued / 265  # pyright: ignore[reportOptionalMemberAccess]
    assert issued.seconds == pytest.approx(3 * each / 4 / 1.98e9, rel=0.01)
    assert "(busiest SM)" in screen(tail())


def test_evenly_spread_blocks_have_no_tail() -> None:
    """5,610 blocks of 32 threads: 42.5 on each SM, of which 32 fit at once. The last wave keeps
    each SM a third as busy, in a third of the time."""
    n = 5610 * 64
    made = report("iterate", 5610, 64, ones(n), ones(n), n)
    assert "tail effect" not in {one.rule for one in made.advice}


def test_a_needless_barrier_is_found_without_shared_memory_and_names_what_is_live() -> None:
    """96 elements of `part` are live at line 16; 16 warps of 128 registers on an SM load 96 lines
    each, far more than its share of the bandwidth needs, so that occupancy costs nothing."""
    n = 528 * 256
    made = report("mix", 528, 256, ones(96 * n), ones(n), n)
    rules = {one.rule: one for one in made.advice}
    assert "low occupancy" not in rules
    found = rules["unnecessary barrier"]
    assert found.line is not None
    assert found.line.endswith(":16")
    assert "uses no shared memory" in found.evidence
    count = re.search(r"(\d+) of them for part \(line 15\)", found.evidence)
    assert count is not None
    assert 96 <= int(count[1]) <= 100
    assert "maxrregcount" not in screen(made)


def test_divergence_shows_its_condition_and_moves_the_data_too() -> None:
    n = 528 * 256
    made = report("by_parity", 528, 256, ones(n), ones(n))
    text = screen(made)
    assert "| if (threadIdx.x % 2 == 0) {" in text
    assert "compute both" not in text
    assert "Use that index in the condition, the loads and the stores" in text


def test_divergence_wastes_the_lanes_of_units_as_well() -> None:
    """Each warp executes 64 special functions on either side, with half of its lanes: warps whose
    lanes agree would execute 64 in all."""
    n = 528 * 256
    made = report("by_unit", 528, 256, ones(n), ones(n))
    [found] = [one for one in made.advice if one.rule == "divergence within warps"]
    assert found.saves["special"] == n // 32 * 64
    assert "saves up to" in screen(made)


def test_divergence_by_data_is_not_mended_by_another_condition() -> None:
    """Every second element is positive, and only that side has instructions."""
    n = 528 * 256
    values = module()[0].to_device(np.where(np.arange(n) % 2, 1, -1).astype(np.float32))
    made = report("by_value", 528, 256, values, ones(n))
    [found] = [one for one in made.advice if one.rule == "divergence within warps"]
    assert found.text.startswith("Only some elements need the long side")


def test_the_work_of_one_thread_is_named_as_such() -> None:
    made = report("serial", 1056, 256, ones(1056 * 256), ones(1056))
    [found] = [one for one in made.advice if one.rule == "work of one thread"]
    assert "the other 255 threads are idle" in found.evidence
    assert "__shfl_down_sync" in found.text
    assert "divergence within warps" not in {one.rule for one in made.advice}


def test_atomics_in_a_branch_are_combined_outside_of_it() -> None:
    n = 528 * 256
    inside = report("count", 528, 256, integers(n), integers(1), n)
    assert "outside the branch, with 0 for lanes that do not take it" in screen(inside)
    outside = report("count_all", 528, 256, integers(n), integers(1))
    assert "__reduce_add_sync or shuffles)" in screen(outside)


def test_atomics_on_few_bins_are_bound_by_one_slice_of_l2() -> None:
    """8 bins are one sector. Each of 8,448 warps has 4 lanes for each bin: 4 passes, of 2 cycles in
    that slice. Counted per block, 8 additions for each of 1,056 blocks are left."""
    n = 1056 * 256
    made = report("tally", 1056, 256, integers(n), integers(8))
    first = ceilings(made)[0]
    assert first.part == "atomics in L2"
    assert first.seconds == pytest.approx(4 * 8448 * 2 / 1.98e9)
    assert "Have each block count in shared memory first" in screen(made)


def test_a_reversed_access_is_not_strided() -> None:
    """128 bytes in descending order that begin inside a sector touch 5 sectors instead of 4."""
    n = 1 << 20
    made = report("flip", n // 256, 256, ones(n + 8), ones(n), n + 3)
    assert "strided access" not in {one.rule for one in made.advice}
    [found] = [one for one in made.advice if one.rule == "misaligned access"]
    assert "descending" in found.evidence


def test_a_load_in_each_iteration_names_its_variable_and_all_reasons() -> None:
    n = 528 * 256
    made = report("scale_all", 528, 256, ones(64 * n), ones(1), n)
    [found] = [one for one in made.advice if one.rule == "load in each iteration"]
    assert "of *scale" in found.evidence
    assert "Load *scale into a local variable" in found.text
    assert "scale is volatile" in found.text
    assert "the store to data might change it" in found.text


def test_shared_memory_is_named_and_not_advised_against_twice() -> None:
    """4 blocks of 2 warps on an SM, by 48 KiB each. A warp computes 8 remainders."""
    n = 4096 * 64
    made = report("filter", 4096, 64, ones(n), ones(n))
    rules = {one.rule: one for one in made.advice}
    assert "low occupancy" not in rules
    found = rules["unused shared memory"]
    assert found.line is not None
    assert "__shared__ float window[12288];" in screen(made)
    assert "256 bytes (64 elements of 4 bytes)" in found.text
    division = rules["integer division"]
    assert f"{8 * 2 * 4096:,} integer remainders" in division.evidence
    assert "Make the block size a constant" in division.text
    assert "integer division" in screen(made)


def test_an_array_whose_index_depends_on_data_is_not_to_be_unrolled() -> None:
    """128 bytes for each of 1,024 threads are 131,072 bytes, which need dynamic shared memory."""
    n = 132 * 1024
    made = report("sort_own", 132, 1024, integers(32 * n), integers(32 * n), n)
    [found] = [one for one in made.advice if one.rule == "array in local memory"]
    assert "values (128 bytes per thread, declared at line" in found.evidence
    assert found.text.startswith("Keep values in shared memory as [index][thread]")
    assert "131,072 bytes per block as dynamic shared memory" in found.text
    # 128 KiB for the threads of an SM fit into its L1: they take no time of DRAM.
    parts = {one.part: one for one in ceilings(made)}
    assert parts["global memory"].work == f"{2 * 32 * n * 4 / 1e6:.3g} MB"


def test_elements_that_all_blocks_load_are_staged() -> None:
    """Each of 512 x 512 threads loads 512 elements of both matrices: each element is loaded by 512
    threads."""
    n = 512
    made = report("product", (32, 32), (16, 16), ones(n * n), ones(n * n), ones(n * n), n)
    [found] = [one for one in made.advice if one.rule.startswith("repeated loads")]
    assert "each byte of a and b 512 times" in found.evidence
    assert "Stage tiles in shared memory" in found.text
    assert "Also let each thread compute several results" in found.text


def test_structures_of_which_little_is_used_are_not_loaded_as_a_whole() -> None:
    n = 528 * 256
    text = screen(report("move", 528, 256, ones(8 * n), 0.5))
    assert "fields x, vx at offsets 0, 12" in text
    assert "Keep each field in a separate array (structure of arrays). " in text + " "
    assert "as vectors" not in text


def test_sms_without_a_block_are_the_first_finding() -> None:
    """One of 132 SMs: with all of them the rest is bound by DRAM."""
    made = report("add_one", 1, 1024, ones(1 << 20), 1 << 20)
    found = verdict(made)[1]
    assert found.text.startswith("  launch  small grid (saves up to ")
    assert "131 SMs have no work" in found.text
    assert "step by gridDim.x * blockDim.x" in found.remedy


def test_a_well_made_kernel_has_no_finding() -> None:
    n = 1 << 20
    made = report("axpy", n // 256, 256, ones(4 * n), ones(4 * n), 2.0)
    assert made.advice == ()
    assert verdict(made)[1].text == NOTHING_FOUND


@pytest.mark.parametrize(("name", "share"), [("move", 0.81), ("by_parity", 0.48)])
def test_a_gain_is_the_bound_before_and_after(name: str, share: float) -> None:
    """The first time of a finding is that of the line above it. 8 of 32 bytes that move for each
    access are used (1.08 MB of 4.33 + 4.33 MB with the stores: 12.5 % more of both)."""
    n = 528 * 256
    arguments = (ones(8 * n), 0.5) if name == "move" else (ones(n), ones(n))
    text = screen(report(name, 528, 256, *arguments))
    bound = re.search(r"Bound by [^:]*: ([\d.]+ [mun]?s) for", text)
    gain = re.search(r"saves up to (\d+) %: ([\d.]+ [mun]?s) to ([\d.]+ [mun]?s)", text)
    assert bound is not None
    assert gain is not None
    assert gain[2] == bound[1]
    assert int(gain[1]) / 100 == pytest.approx(share, abs=0.03)


def test_lanes_that_collide_in_shared_memory_are_combined() -> None:
    """All lanes add to one counter: 32 passes a warp. Counters of each warp would not end that."""
    n = 1056 * 256
    made = report("histogram", 1056, 256, integers(n), integers(16 * 1056))
    [found] = [one for one in made.advice if one.rule == "atomics on one address"]
    assert found.text.startswith("First combine the lanes that use the same address")
    [shared] = [one for one in ceilings(made) if one.part == "shared memory"]
    assert shared.seconds > 32 * n / 32 / 132 / 1.98e9


def test_a_switch_with_several_long_sides_is_not_compacted() -> None:
    n = 1056 * 256
    made = report("shade", 1056, 256, integers(n), ones(n), ones(n))
    found = next(one for one in made.advice if one.rule == "divergence within warps")
    assert found.text.startswith("Reorder the elements so that 32 consecutive threads")


def test_lanes_that_skip_elements_are_not_padded() -> None:
    """Words 0 and 32 are in one bank: lanes 0 and 16."""
    n = 1056 * 256
    made = report("pairs", 1056, 256, ones(n), ones(n))
    [found] = [one for one in made.advice if one.rule == "bank conflicts"]
    assert "lanes 0, 16 access" in found.evidence
    assert "Lane addresses are 2 elements apart" in found.text
    assert "split buf into 2 arrays" in found.text


def test_a_table_that_all_threads_share_is_kept_once() -> None:
    n = 1056 * 256
    made = report("lookup", 1056, 256, integers(n), ones(n))
    [found] = [one for one in made.advice if one.rule == "array in local memory"]
    assert found.text.startswith("All threads have the same values in table")


def test_atomics_that_warps_have_combined_are_combined_by_block() -> None:
    n = 4224 * 256
    made = report("dot_by_warp", 4224, 256, ones(n), ones(1))
    [found] = [one for one in made.advice if one.rule == "atomics on one address"]
    assert found.text.startswith("Each warp already executes only one atomic")


def test_structures_are_padded_only_where_their_bytes_are_not_the_bound() -> None:
    """4 bytes instead of 3 for each pixel: 5 of DRAM with the result instead of 4, which takes 25 %
    longer if DRAM is the bound. In `tone` the 64 multiplications of each thread are."""
    n = 1056 * 256
    rgb = module()[0].to_device(np.ones(3 * n, np.uint8))
    grey = module()[0].to_device(np.ones(n, np.uint8))
    made = report("grey", 1056, 256, rgb, grey)
    [found] = [one for one in made.advice if one.rule == "array of structures"]
    assert ceilings(made)[0].part == "global memory"
    assert "padded" not in found.text
    made = report("tone", 1056, 256, rgb, grey)
    [found] = [one for one in made.advice if one.rule == "array of structures"]
    assert ceilings(made)[0].part == "instructions"
    assert "padded to 4 bytes (alignas(4), uchar4)" in found.text


def test_what_is_not_the_bound_gains_nothing() -> None:
    """12 bytes of each 16 that DRAM moves are those of the structures: all of them are used."""
    n = 1024 * 256
    text = screen(report("lengths", 1024, 256, ones(3 * n), ones(n)))
    assert "array of structures (not the bottleneck: " in text
    assert text.count("This change does not shorten the run.") == 1
    assert "padded" not in text


def test_a_running_remainder_begins_with_a_remainder() -> None:
    """i is up to 270,335: without its remainder by 4,000, `in[j]` would be out of bounds."""
    n = 1056 * 256
    made = report("wrap", 1056, 256, ones(4096), ones(n), 4000)
    [found] = [one for one in made.advice if one.rule == "integer division"]
    assert "before the loop (j = ... % w for the first iteration)" in found.text
    assert "j += step; while (j >= w) j -= w;" in found.text
    made = report("split", 1056, 256, ones(n), ones(n), 4000)  # no loop, nothing to update
    [found] = [one for one in made.advice if one.rule == "integer division"]
    assert found.text == "Make the divisor a constant (constexpr or a template parameter)."


@pytest.mark.parametrize(
    ("width", "lanes"),
    [(4096, "a warp"), (8, "8 lanes")],
)
def test_a_warp_for_each_row_needs_a_larger_grid(width: int, lanes: str) -> None:
    """As many times the blocks as lanes share a row; a loop that NVVM unrolls by 4 does not have
    rows of 4 elements."""
    rows = 16 * 256
    made = report("matvec", 16, 256, ones(rows * width), ones(width), ones(rows), width)
    found = next(one for one in made.advice if one.rule == "strided access")
    number = 32 if lanes == "a warp" else 8
    assert "each thread accesses consecutive elements" in found.evidence
    assert f"Give each row to {lanes}, so that" in found.text
    assert f"element of row i / {number}, starting at element i % {number}. Launch" in found.text
    assert f"Launch {number} times as many blocks ({16 * number:,})" in found.text


def test_a_sorted_index_keeps_the_positions_of_the_results() -> None:
    n = 1024 * 256
    indices = module()[0].to_device(np.random.default_rng(1).permutation(n).astype(np.int32))
    made = report("pick", 1024, 256, ones(n), indices, ones(n))
    [found] = [one for one in made.advice if one.rule == "scattered access"]
    assert "Sort the indices together with their positions" in found.text
    assert "otherwise, the results are in a different order" in found.text


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [("decay", False), ("from_end", False), ("gather_sum", True), ("gather_max", True)],
)
def test_iterations_are_shared_only_if_they_are_independent(name: str, is_shared: bool) -> None:
    """s * 0.99 + 0.25 and x - s need the s of the iteration before. A sum and a maximum can be
    computed in parts."""
    n = 1056 * 256
    made = report(name, 1056, 256, integers(n), ones(n + 128), ones(n))
    [found] = [one for one in made.advice if one.rule == "divergence within warps"]
    assert "First sort a list of the elements' indices by number of iterations" in found.text
    assert ("divide the iterations for one element" in found.text) is is_shared


def test_consecutive_threads_add_in_a_reduction() -> None:
    """Consecutive multiples of 2 s would have bank conflicts. In an up-sweep, which a scan needs as
    it is, the element that is stored differs from step to step."""
    n = 1056 * 256
    text = screen(report("interleaved_sum", 1056, 256, ones(n), ones(1056)))
    assert "if (t < s), where s starts at half the block size" in text
    assert "sequential addressing" in text
    assert (
        "does not shorten the run" not in text
    )  # fewer barriers are, by latency, which is the bound
    made = report("up_sweep", 1056, 256, ones(n), ones(n))
    assert not any("sequential addressing" in one.text for one in made.advice)


def test_padding_names_the_line_and_the_macro_of_its_array() -> None:
    """TILE is also the step of loops: 33 for it would change these."""
    made = report("turn", (32, 32), (32, 32), ones(1 << 20), ones(1 << 20))
    [found] = [one for one in made.advice if one.rule == "bank conflicts"]
    line = SOURCE[: SOURCE.index("__shared__ float tile[TILE]")].count("\n") + 1
    assert f"(line {line}: tile[...][TILE + 1] instead of [TILE])" in found.text


def test_one_block_more_than_sms_is_a_tail() -> None:
    """133 blocks of 32 warps: one SM has 2 of them. In blocks of 2 warps, 2,128 are 16.1 on each
    SM: at most 17, which are 34 warps instead of 64. Blocks of 4 warps are at most 9: 36 warps."""
    n = 133 * 1024
    made = report("iterate", 133, 1024, ones(n), ones(n), n)
    [found] = [one for one in made.advice if one.rule == "tail effect"]
    assert "1 SM has 2 of them, and each of the other SMs has 1" in found.evidence
    assert found.text.startswith("Use blocks of 64 threads: 2,128 blocks, at most 17 on an SM")


def test_lanes_that_are_active_in_each_warp_are_not_the_work_of_one_thread() -> None:
    """In the first steps 128, 64 and 32 threads of a block add, which are in all of its warps."""
    n = 1056 * 256
    made = report("interleaved_sum", 1056, 256, ones(n), ones(1056))
    rules = {one.rule for one in made.advice}
    assert "work of one thread" not in rules
    [found] = [one for one in made.advice if one.rule == "divergence within warps"]
    assert "compute both" not in found.text  # a side that stores cannot be computed in all lanes


def test_an_element_that_its_thread_keeps_between_barriers_is_kept_in_a_register() -> None:
    """Each of 100 iterations loads and stores it: 99 of both are saved."""
    n = 1056 * 256
    made = report("steps", 1056, 256, ones(n), n)
    [found] = [one for one in made.advice if one.rule == "unnecessary barrier"]
    assert "uses only one element of x" in found.text
    assert found.saves["loaded"] == pytest.approx(99 * 4 * n)
    assert not any(one.rule.startswith("repeated loads") for one in made.advice)


def test_the_fields_of_a_structure_are_one_finding() -> None:
    n = 1056 * 256
    made = report("interleave", 1056, 256, ones(n), ones(n), ones(2 * n))
    [found] = [one for one in made.advice if one.rule == "array of structures"]
    assert "store whole structures as vectors (float2)" in found.text


def test_rows_of_whole_sectors_need_no_wider_block() -> None:
    """16 floats are two sectors; what is moved beyond them is due to the halo, which L1 keeps."""
    w = 1026
    made = report("nine", (64, 64), (16, 16), ones(w * w), ones(w * w), w)
    rules = {one.rule for one in made.advice}
    assert "narrow block" not in rules
    assert "misaligned access" in rules
    assert "misaligned" not in screen(made)
    assert "strided access" not in rules


def test_an_array_of_one_dimension_is_padded_by_its_index() -> None:
    """In the step of 16, lanes access every 32nd word. A word after every 32 words moves them to
    neighboring banks."""
    made = report("tree_sum", 528, 256, ones(528 * 512), ones(528))
    found = [one for one in made.advice if one.rule == "bank conflicts"]
    assert any("use tree[i + i / " in one.text for one in found)
    assert not any("[...]" in one.text for one in found)


def test_a_search_is_not_shared_by_lanes() -> None:
    """The number of iterations follows from what the loop itself loads."""
    n = 1 << 16
    values = module()[0].to_device(np.random.default_rng(2).integers(0, 2, n).astype(np.uint8))
    made = report("runs", n // 256, 256, values, integers(n), n)
    assert any(one.rule == "divergence within warps" for one in made.advice)
    assert not any("divide the iterations" in one.text for one in made.advice)


def test_a_thread_that_walks_along_bytes_needs_no_wider_loads() -> None:
    n = 1 << 16
    values = module()[0].to_device(np.repeat(np.arange(n // 64), 64).astype(np.uint8))
    made = report("runs", n // 256, 256, values, integers(n), n)
    assert "narrow access" not in {one.rule for one in made.advice}


def test_lines_that_compute_with_doubles_between_floats_are_one_finding() -> None:
    """The floats are converted in one line, and the double is converted back after the branches.
    Of the instructions of a double pow, powf has 58 %."""
    n = 1056 * 256
    made = report("encode", 1056, 256, ones(n), ones(n))
    found = [one for one in made.advice if one.rule == "double precision"]
    assert all("call the float functions (powf)" in one.text for one in found)
    [costly] = [one for one in found if one.saves["double"] > 32 * n // 32]
    executed = next(one.counts.warp_instructions for one in made.lines if one.line == costly.line)
    assert costly.saves["issued"] == pytest.approx(0.42 * executed, rel=1e-4)
    assert sum("double precision" in line.title for line in verdict(made)) == 1


def test_every_screen_fits() -> None:
    for made in (tail(), report("filter", 4096, 64, ones(1 << 18), ones(1 << 18))):
        text = render_text(made, parts=Parts(details=False, next_command="warploom time k.cu"))
        assert len(text.splitlines()) <= 15 - 4
