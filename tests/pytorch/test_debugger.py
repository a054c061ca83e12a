"""Kernels of Triton and of `torch.compile`, stepped by their lines of Python."""

from __future__ import annotations


def test_a_kernel_of_triton(debugged):
    said = debugged(
        "programs/scaled.py",
        *("break scaled.py:13", "run", "cuda thread 5", "print value", "lanes value"),
        *("reverse-next", "print n", "print x[5]", "next", "print mask", "detach"),
    )
    stored = "13\t    tl.store(out + at, value, mask)"
    assert said.count(stored) == 3  # at the breakpoint, from another thread, and forward again
    assert "$1 = 16" in said  # 5 * 3 + 1
    assert "  lane  0:  1  4  7 10 13 16 19 22" in said
    assert "12\t    value = value + 1.0" in said
    assert {"$2 = 100", "$3 = 5", "$4 = true"} <= set(said)
    assert said[-1] == "[1.0, 4.0, 7.0, 10.0]"


def test_a_kernel_that_pytorch_generates(debugged):
    said = debugged("programs/scored.py", "start", "list", "next", "next", "info locals", "detach")
    assert any(line.startswith("triton_per_fused__softmax") for line in said)
    assert any("tl.program_id(0) * XBLOCK" in line for line in said)
    assert any(line.startswith("in_ptr0 = (float *) 0x") for line in said)
    assert said[-1] == "right True"
