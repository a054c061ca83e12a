"""Bugs found by sessions: forward, back, by lanes, by who wrote what."""

from __future__ import annotations

import re

import numpy as np
from sessions import Talk, talk

STENCIL = """
extern "C" __global__ void smooth(int n, const float *x, float *y)
{
    __shared__ float tile[66];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = threadIdx.x + 1;
    tile[t] = x[i];
    if (threadIdx.x == 0)
        tile[0] = i > 0 ? x[i - 1] : 0.0f;
    if (threadIdx.x == blockDim.x - 1)
        tile[t + 1] = i + 1 < n ? x[i] : 0.0f;
    __syncthreads();
    y[i] = tile[t - 1] + tile[t] + tile[t + 1];
}
"""
"""The halo on the right takes x[i] where it should take x[i + 1]."""


def line(source: str, text: str) -> int:
    """The line of a source that holds a text."""
    return 1 + next(n for n, each in enumerate(source.split("\n")) if text in each)


def test_the_wrong_neighbour_of_a_stencil_is_found_by_its_last_write() -> None:
    x = np.arange(128, dtype=np.float32)

    def script(session: Talk) -> None:
        # y[63] should be 62 + 63 + 64.
        session.say("break 13 if i == 63")
        session.say("run")
        assert session.line() == line(STENCIL, "y[i] =")
        assert [session.value(f"tile[{n}]") for n in (63, 64, 65)] == ["62", "63", "63"]
        said = session.say("who wrote tile[65]")
        assert f"kernel.cu:{line(STENCIL, 'tile[t + 1] =')}" in said
        assert session.value("threadIdx.x") == "63"
        assert session.value("i") == "63"

    talk(STENCIL, 2, 64, [("", 128), ("x", x), ("y", np.zeros(128, np.float32))], script)


REDUCTION = """
extern "C" __global__ void total(const int *x, int *out)
{
    __shared__ int part[32];
    int t = threadIdx.x;
    part[t] = x[t];
    for (int d = 16; d > 0; d /= 2)
        if (t >= 32 - d)
            part[t] += part[t - d];
    if (t == 31)
        *out = part[31];
}
"""
"""Nothing orders the lanes: under `adversarial` one runs ahead of those that it reads from."""


def test_a_sum_without_a_barrier_reads_what_is_not_written_yet() -> None:
    ones = np.ones(32, np.int32)

    def script(session: Talk) -> None:
        session.say(f"break {line(REDUCTION, '*out =')}")
        session.say("run")
        assert session.value("part[31]") != "32"
        # Go back to where it was last added to: what it took was still to be added to by others.
        said = session.say("who wrote part[31]")
        assert f"kernel.cu:{line(REDUCTION, '+=')}" in said
        assert (session.value("t"), session.value("d")) == ("31", "1")
        assert session.value("part[30]") != "16"
        # The lane that should have done so has not come there yet.
        session.say("cuda lane 30")
        assert session.line() <= line(REDUCTION, "+=")

    out = np.zeros(1, np.int32)
    talk(REDUCTION, 1, 32, [("x", ones), ("out", out)], script, schedule="adversarial")


SIDES = """
extern "C" __global__ void sides(int *x)
{
    int lane = threadIdx.x;
    int v = 0;
    if (lane & 1)
        v = 10 * lane;
    else
        v = 7 + lane;
    x[lane] = v;
}
"""


def test_both_sides_of_a_divergent_if_are_stepped() -> None:
    def script(session: Talk) -> None:
        session.say("catch divergence")
        session.say("run")
        groups = session.session.groups(session.session.thread().warp)
        assert {group.lanes for group in groups} == {0x55555555, 0xAAAAAAAA}
        session.say("delete")
        odd, even = line(SIDES, "10 * lane"), line(SIDES, "7 + lane")
        session.say("cuda lane 1")
        first = session.line()
        session.say(f"until {odd}")
        assert session.line() == odd
        assert session.value("lane") == "1"
        session.say("cuda lane 2")
        session.say(f"until {even}")
        assert session.line() == even
        session.say(f"until {line(SIDES, 'x[lane] =')}")
        assert session.value("v") == "9"
        assert first <= odd
        # Back to where this warp parted.
        said = session.say("where diverged")
        assert f"kernel.cu:{line(SIDES, 'if (lane')}" in said

    talk(SIDES, 1, 32, [("x", np.zeros(32, np.int32))], script)


SKIPPED = """
extern "C" __global__ void skipped(int *x)
{
    if (threadIdx.x < 40)
        __syncthreads();
    while (*(volatile int *)x == 0)
        ;
    __syncthreads();
}
"""


def test_a_deadlock_shows_its_two_waiting_groups() -> None:
    def script(session: Talk) -> None:
        said = session.say("run")
        assert "deadlock" in said.lower() or "can ever" in said.lower()
        said = session.say("info cuda threads")
        assert f"kernel.cu:{line(SKIPPED, '__syncthreads')}" in said
        groups = re.findall(r"\[(.*?)\]", said)
        assert any("barrier" in group for group in groups)
        assert any("value" in group for group in groups)

    talk(SKIPPED, 1, 64, [("x", np.zeros(1, np.int32))], script)


FUNCTIONS = """
template <typename T> struct Pair { T first, second; };

template <typename T> __device__ T sum(Pair<T> pair)
{
    T result = pair.first + pair.second;
    return result;
}

extern "C" __global__ void functions(float *x)
{
    Pair<float> pair = {x[threadIdx.x], 2.0f};
    float a = sum(pair);
    x[threadIdx.x] = a;
}
"""


def test_steps_into_templates_out_of_them_and_back() -> None:
    x = np.arange(32, dtype=np.float32)

    def script(session: Talk) -> None:
        said = session.say("break sum if nonsense == 1")
        assert "there is no nonsense in sum" in said
        session.say("break functions")
        session.say("run")
        session.say("cuda thread 5")
        session.say("next")
        assert session.line() == line(FUNCTIONS, "sum(pair)")
        said = session.say("step")
        assert "sum" in said
        assert session.line() == line(FUNCTIONS, "T result")
        assert session.value("pair.first") == "5"
        trace = session.say("backtrace").split("\n")
        assert "sum" in trace[0]
        assert f"functions at kernel.cu:{line(FUNCTIONS, 'sum(pair)')}" in trace[1]
        session.say("up")
        assert session.value("pair.second") == "2"
        session.say("finish")
        assert session.line() == line(FUNCTIONS, "sum(pair)")
        session.say("next")
        assert session.value("a") == "7"
        session.say("reverse-next")
        assert session.line() == line(FUNCTIONS, "sum(pair)")
        session.say("reverse-stepi")
        session.say("set variable pair.second = 10")
        session.say("continue")
        assert session.value("x[5]") in ("7", "15")

    talk(FUNCTIONS, 1, 32, [("x", x)], script)


def test_a_nan_is_found_where_it_comes_from_numbers() -> None:
    source = """
    extern "C" __global__ void roots(const float *x, float *y)
    {
        int i = threadIdx.x;
        float r = sqrtf(x[i]);
        y[i] = r * 2.0f;
    }
    """

    def script(session: Talk) -> None:
        session.say("catch nan")
        said = session.say("run")
        assert "kernel.cu:5" in said
        assert session.value("i") == "3"

    x = np.arange(32, dtype=np.float32)
    x[3] = -1
    talk(source, 1, 32, [("x", x), ("y", np.zeros(32, np.float32))], script)


def test_costs_of_accesses_stop_a_launch() -> None:
    source = """
    extern "C" __global__ void costs(float *x)
    {
        __shared__ float t[32][32];
        int i = threadIdx.x;
        t[0][i] = x[i];
        t[i][1] = 1.0f;
        x[i * 8] = t[0][i];
    }
    """

    def script(session: Talk) -> None:
        session.say("catch bank-conflict 31")
        assert "was at kernel.cu:7" in session.say("run")
        session.say("delete")
        session.say("catch uncoalesced >= 32 if threadIdx.x == 4")
        assert "was at kernel.cu:8" in session.say("continue")
        assert session.value("i") == "4"

    talk(source, 1, 32, [("x", np.zeros(256, np.float32))], script)


def test_conditions_over_lanes_and_values_in_all_of_them() -> None:
    values = [10 * n if n % 2 else 7 + n for n in range(32)]
    above = sum(value > 20 for value in values)

    def script(session: Talk) -> None:
        session.say(f"break {line(SIDES, 'x[lane] =')} if popcount(v > 20) == {above}")
        session.say("run")
        assert session.line() == line(SIDES, "x[lane] =")
        rows = session.say("lanes v").split("\n")[1:5]
        assert [int(n) for row in rows for n in re.findall(r"\d+", row)[1:]] == values

    talk(SIDES, 1, 32, [("x", np.zeros(32, np.int32))], script)


RACING = """
extern "C" __global__ void racing(const int *x, int *out)
{
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = x[t];
    __syncwarp();
    if (t < 63)
        out[t] = part[t + 1];
}
"""
"""Thread 31 reads what the first thread of the other warp writes, without a barrier between."""


def test_a_race_is_stopped_at_with_the_two_accesses() -> None:
    def script(session: Talk) -> None:
        session.say("catch race")
        said = session.say("run")
        assert f"kernel.cu:{line(RACING, 'part[t + 1]')}" in said
        assert f"kernel.cu:{line(RACING, 'part[t] =')}" in said
        assert session.value("threadIdx.x") == "32"
        assert "thread (31, 0, 0)" in said
        session.say("delete")
        assert "has found no" in session.say("catch uninitialized")

    out = np.zeros(64, np.int32)
    talk(RACING, 1, 64, [("x", np.arange(64, dtype=np.int32)), ("out", out)], script)


UNWRITTEN = """
extern "C" __global__ void halo(const float *x, float *y)
{
    __shared__ float tile[65];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = 2.0f * tile[threadIdx.x + 1];
}
"""
"""Nobody writes tile[64]."""


def test_a_read_of_what_nobody_wrote_is_stopped_at() -> None:
    def script(session: Talk) -> None:
        session.say("catch uninitialized")
        said = session.say("run")
        assert "These bytes were never written" in said
        assert (session.session.focus.warp, session.line()) == (1, line(UNWRITTEN, "2.0f"))
        # Back over it, and to the same access from behind.
        session.say("goto 1000000")
        assert "These bytes were never written" in session.say("reverse-continue")
        assert session.line() == line(UNWRITTEN, "y[threadIdx.x] =")

    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    talk(UNWRITTEN, 1, 64, [("x", x), ("y", y)], script)


FOLLOWS = """
extern "C" __global__ void follows(volatile int *x)
{
    int w = threadIdx.x / 32;
    for (int n = 1; n <= 5; n++)
        x[w] = n;
    x[2 + w] = x[1 - w];
}
"""


def test_a_warp_is_stepped_while_others_stay_or_run() -> None:
    def script(session: Talk) -> None:
        assert "off" in session.say("show scheduler-locking")
        session.say("break follows")
        session.say("run")
        session.say("cuda thread 33")
        session.say("set scheduler-locking on")
        session.say("delete")
        for lap in range(1, 6):
            session.say(f"until {line(FOLLOWS, 'x[w] = n')}")
            assert session.value("n") == str(lap)
        session.say(f"until {line(FOLLOWS, 'x[2 + w]')}")
        assert [session.value(f"x[{n}]") for n in range(2)] == ["0", "5"]  # warp 0 has stayed
        # Back, and forward again the same way.
        session.say("who wrote x[1]")
        assert session.value("x[1]") == "4"
        assert session.value("x[0]") == "0"
        session.say(f"until {line(FOLLOWS, 'x[2 + w]')}")
        session.say("next")
        assert [session.value(f"x[{n}]") for n in range(2)] == ["0", "5"]
        # Others run only while it is not stepped.
        session.say("set scheduler-locking step")
        session.say("cuda thread 0")
        session.say(f"until {line(FOLLOWS, 'x[w] = n')}")
        session.say("next")
        assert session.value("x[1]") == "5"
        session.say("set scheduler-locking off")
        session.say("continue")
        assert [session.value(f"x[{n}]") for n in range(4)] == ["5", "5", "5", "0"]

    talk(FOLLOWS, 1, 64, [("x", np.zeros(4, np.int32))], script)
