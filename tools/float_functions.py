"""Counts the PTX instructions of math functions on doubles and on floats, for
`warploom.report.advice.doubles`: prints each function with both counts and their ratio.

    python tools/float_functions.py
"""

from __future__ import annotations

import numpy as np

import warploom as wl

NAMES = (
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh"),
    *("atanh", "exp", "exp2", "log", "log2", "log10", "pow", "rsqrt", "sqrt", "cbrt", "erf"),
    "erfc",
)
TYPES = {"double": ("", np.float64), "float": ("f", np.float32)}


def main() -> None:
    """Prints a line for each function."""
    module = wl.Device("h100").compile("".join(map(_kernels, ("", *NAMES))))

    def count(name: str, kind: str) -> int:
        """Returns the warp instructions of a kernel whose 32 lanes have arguments of their own."""
        low, high = (1.1, 2.0) if name == "acosh" else (0.1, 0.9)
        numbers = np.linspace(low, high, 64).astype(TYPES[kind][1])
        return module[f"k_{name}_{kind}"][1, 32](numbers).counters.warp_instructions

    for name in NAMES:
        double, single = (count(name, kind) - count("", kind) for kind in TYPES)
        print(f"{name:6} {double:4} {single:4} {single / double:.2f}")


def _kernels(name: str) -> str:
    """Returns kernels that call a function in both precisions, or that copy for no name."""
    second = ", x[threadIdx.x + 32]" if name == "pow" else ""
    return "".join(
        f'extern "C" __global__ void k_{name}_{kind}({kind} *x)'
        f"{{ x[threadIdx.x] = {f'{name}{suffix}' if name else ''}(x[threadIdx.x]{second}); }}\n"
        for kind, (suffix, _) in TYPES.items()
    )


if __name__ == "__main__":
    main()
