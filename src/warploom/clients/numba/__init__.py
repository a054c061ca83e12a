"""Runs Numba CUDA programs in the current process: numba-cuda compiles the kernels, and the
software GPU executes them.

What `warploom.cuda` offers is made here. No driver library is needed.

In: what numba-cuda compiles, and its calls of the driver. Out: launches and arrays on the device.
The driver's functions are those of `clients.driver`.
"""
