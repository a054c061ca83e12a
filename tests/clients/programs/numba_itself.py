"""Imports the `numba.cuda` that Numba has itself, as if numba-cuda were not installed."""

import sys

sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "NumbaCudaFinder"]

import numba.cuda.cudadrv.nvrtc  # noqa: E402

assert "numba_cuda" not in numba.cuda.cudadrv.nvrtc.__file__
print("imported")
