"""The CUDA runtime (libcudart) on the software GPU, for programs that nvcc linked with the shared
one: a thin layer over `clients.driver`, with the primary context of the device.

In: calls of libcudart, by name. Out: calls of the driver's functions, and the runtime's own error
numbers.
"""
