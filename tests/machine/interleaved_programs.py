"""Draws kernels whose loops over a grid advance by a page or more, so that compiled code may
interleave the warps of a block, with what may forbid or end that."""

from __future__ import annotations

from hypothesis import strategies as st

ELEMENTS = 3 << 15
"""Elements of each of the arrays `a`, `b` and `c`."""

BODIES = (
    "c[i] = a[i];",
    "c[i] = a[i] + b[i];",
    "c[i] = 3 * c[i] + a[i];",
    "c[i] = a[i] + b[i]; b[i] = 7;",
    "sum += a[i];",
    "sum += a[i] * b[i]; c[i] = sum;",
    "wide += a[i]; c[i] = (int)(wide >> 3);",
    "((int2 *)c)[i / 2] = make_int2(a[i], b[i]);",
    "c[i / 2] = a[i];",
    "c[i + 1] = a[i]; sum += b[i];",
    "c[i] = c[i + 64];",
    "atomicAdd(&out[0], a[i]);",
    "if (a[i] == 77) break; sum += b[i];",
    "if (a[i] > 3) c[i] = 1;",
    "c[i] = a[b[i] & 1023];",
    "sum += __shfl_xor_sync(~0u, a[i], 1);",
    "tile[threadIdx.x] += a[i];",
    "tile[i & 255] = a[i];",
)
LOOPS = (
    "for (int i = at; i < n; i += step) {{ {body} }}",
    "#pragma unroll 1\nfor (int i = at; i < n; i += step) {{ {body} }}",
    "#pragma unroll 4\nfor (int i = at; i < n; i += step) {{ {body} }}",
    "for (size_t i = at; i < n; i += step) {{ {body} }}",
    "for (int i = n - 1 - at; i >= 0; i -= step) {{ {body} }}",
    "for (int r = 0; r < 3; r++) for (int i = at; i < n; i += step) {{ {body} }}",
    "if (at < 96) for (int i = at; i < n; i += step) {{ {body} }}",
    "for (int i = at; i < n - 3000 * (threadIdx.x / 32 & 1); i += step) {{ {body} }}",
)


def kernel_of(loops: str) -> str:
    """Returns the source of a kernel with these loops."""
    return f"""
extern "C" __global__ void k(int *a, int *b, int *c, int *out, int n, int step) {{
    __shared__ int tile[256];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int at = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    long long wide = 0;
{loops}
    __syncthreads();
    out[1 + at] = sum + tile[threadIdx.x ^ 1];
}}
"""


@st.composite
def interleaved_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel of one or two loops, with or without a barrier between them."""
    loops = [
        draw(st.sampled_from(LOOPS)).format(body=draw(st.sampled_from(BODIES)))
        for _ in range(draw(st.integers(1, 2)))
    ]
    return kernel_of(draw(st.sampled_from(["\n", "\n__syncthreads();\n"])).join(loops))
