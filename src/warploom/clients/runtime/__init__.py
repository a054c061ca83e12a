"""Implements the CUDA runtime API (libcudart) on the software GPU, for programs that nvcc linked
with the shared runtime library. The package is a thin layer over `clients.driver` and uses the
primary context of the device.

In: calls of libcudart, by name. Out: calls of the driver's functions, and the runtime's own error
numbers.
"""
