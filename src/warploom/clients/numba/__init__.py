"""Numba's CUDA programs in this process: compiled by numba-cuda, run on the software GPU.

What `warploom.cuda` offers is made here. No driver library is needed.
"""
