import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, a, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask)
    value = value * a
    value = value + 1.0
    tl.store(out + at, value, mask)


x = torch.arange(100, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
scale[(2,)](x, out, 100, 3.0, BLOCK=64)
print(out[:4].tolist())
