"""Call stacks by lane in traces: fib(n) calls fib(n - 1), then fib(n - 2)."""

import numpy as np

import warploom as wl

FIB = """__device__ __noinline__ int fib(int n)
{
    if (n < 2)
        return n;
    int before = fib(n - 1);
    return before + fib(n - 2);
}
__device__ __forceinline__ int of_thread(int t) { return fib(t); }
extern "C" __global__ void numbers(int *out)
{
    out[threadIdx.x] =
        of_thread(threadIdx.x);
}
"""


def test_each_lane_has_the_calls_that_have_not_returned() -> None:
    """In fib(3) the innermost fib(1) is called from line 5, in fib(2) from line 5, in fib(3), from
    the function that is inlined in line 12. Lanes 0 and 1 wait in the outermost fib meanwhile."""
    gpu = wl.Device("h100")
    kernel = gpu.compile(FIB, name="fib.cu")["numbers"]
    warp = kernel[1, 4].trace(np.zeros(4, np.int32)).warp()
    deepest = max(warp.steps, key=lambda step: len(warp.call_stack(3, step.time)))

    def shown(lane: int) -> list[tuple[str, int]]:
        return [(one.function, one.line) for one in warp.call_stack(lane, deepest.time)][1:]

    assert deepest.active == 0b1000
    around = [("numbers", 12)]
    assert shown(3) == [("fib", 5), ("fib", 5), ("of_thread", 8), *around]
    assert shown(0) == [("of_thread", 8), *around]
    first, last = warp.steps[0], warp.steps[-1]
    assert [one.function for one in warp.call_stack(0, first.time)] == ["numbers"]
    assert [one.function for one in warp.call_stack(3, last.time)] == ["numbers"]
    assert warp.call_stack(0, -1) == ()
