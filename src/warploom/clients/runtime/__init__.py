"""The CUDA runtime (libcudart) on the software GPU, for programs that nvcc linked with the shared
one: a thin layer over `clients.driver`, with the primary context of the device.
"""
