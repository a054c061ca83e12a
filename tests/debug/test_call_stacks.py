"""Frames of calls that are not inlined: recursion and calls through pointers, which have a stack of
their own for each thread."""

from __future__ import annotations

import numpy as np
import pytest
from sessions import Talk, talk

FACTORIAL = """
__device__ __noinline__ int factorial(int n)
{
    if (n <= 1)
        return 1;
    int rest = factorial(n - 1);
    return n * rest;
}
__global__ void k(int *out)
{
    int value = factorial(threadIdx.x % 3 + 1);
    out[threadIdx.x] = value;
}
"""

BY_POINTER = """
__device__ __noinline__ int doubled(int n)
{
    return 2 * n;
}
__device__ __noinline__ int squared(int n)
{
    return n * n;
}
__device__ int (*const table[2])(int) = {doubled, squared};
__global__ void k(int *out, int which)
{
    int value = table[which](threadIdx.x);
    out[threadIdx.x] = value;
}
"""


def go_to_the_innermost_call(session: Talk) -> None:
    """Thread 2 calls `factorial(3)`, and stops where n is 1."""
    session.say("thread 2")
    session.say("break kernel.cu:5 if threadIdx.x == 2")
    session.say("continue")


def frames(session: Talk) -> list[tuple[str, int]]:
    return [(one.function, one.line) for one in session.session.frames()]


def test_each_call_of_a_recursive_function_has_a_frame() -> None:
    """Thread 2 is three calls deep when n is 1: two from line 6, one from the kernel."""

    def script(session: Talk) -> None:
        go_to_the_innermost_call(session)
        names = [name for name, _ in frames(session)]
        assert names == ["factorial", "factorial", "factorial", "k"]
        assert [line for _, line in frames(session)[1:]] == [6, 6, 11]
        lines = session.say("backtrace").splitlines()
        assert len(lines) == 4
        assert lines[3].startswith("#3")

    talk(FACTORIAL, 1, 32, [("out", np.zeros(32, np.int32))], script)


def test_finish_leaves_one_call_and_next_steps_over_a_recursive_one() -> None:
    def script(session: Talk) -> None:
        go_to_the_innermost_call(session)
        session.say("finish")
        assert len(frames(session)) == 3
        session.say("finish")
        assert len(frames(session)) == 2
        session.say("finish")
        assert [name for name, _ in frames(session)] == ["k"]

    talk(FACTORIAL, 1, 32, [("out", np.zeros(32, np.int32))], script)

    def over(session: Talk) -> None:
        session.say("thread 2")
        session.say("break kernel.cu:6 if threadIdx.x == 2")
        session.say("continue")
        session.say("delete 1")
        assert len(frames(session)) == 2
        session.say("next")
        assert (len(frames(session)), session.line()) == (2, 7)
        assert session.value("rest") == "2"

    talk(FACTORIAL, 1, 32, [("out", np.zeros(32, np.int32))], over)


def test_an_outer_frame_of_the_same_function_does_not_show_the_values_of_the_inner_one() -> None:
    def script(session: Talk) -> None:
        go_to_the_innermost_call(session)
        assert session.value("n") == "1"
        session.say("up")
        assert "a deeper call of this function" in session.say("print n")
        assert session.value("threadIdx.x") == "2"

    talk(FACTORIAL, 1, 32, [("out", np.zeros(32, np.int32))], script)


@pytest.mark.parametrize(("which", "name"), [(0, "doubled"), (1, "squared")])
def test_a_call_through_a_pointer_shows_its_caller(which: int, name: str) -> None:
    def script(session: Talk) -> None:
        session.say(f"break {name}")
        session.say("continue")
        assert [function for function, _ in frames(session)] == [name, "k"]
        session.say("up")
        assert session.line() == 13
        assert session.value("which") == str(which)

    talk(BY_POINTER, 1, 32, [("out", np.zeros(32, np.int32)), ("", np.int32(which))], script)
