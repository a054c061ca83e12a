"""Runs existing GPU programs on the software GPU, by replacing NVIDIA's libraries.

In: calls of a program's libraries (libcuda, libcudart, NVRTC, nvJitLink, Numba, PyTorch). Out:
launches, copies and reports. Devices, memory and launches themselves are left to `host`.
"""
