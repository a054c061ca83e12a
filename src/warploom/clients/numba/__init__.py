"""Numba's CUDA programs in this process: compiled by numba-cuda, run on the software GPU.

What `warploom.cuda` offers is made here. No driver library is needed.

In: what numba-cuda compiles, and its calls of the driver. Out: launches and arrays on the device.
The driver's functions are those of `clients.driver`.
"""
