"""Programs written for a GPU, run on the software one: what stands in for NVIDIA's libraries.

In: calls of a program's libraries (libcuda, libcudart, NVRTC, nvJitLink, Numba, PyTorch). Out:
launches, copies and reports. Devices, memory and launches themselves are left to `host`.
"""
