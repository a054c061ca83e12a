"""Turns sources into programs that a device can run: compilers, signatures of kernels,
resources."""
