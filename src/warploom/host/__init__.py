"""Implements the Python API: devices, buffers, modules, kernels and runs.

In: sources, arrays, launch configurations. Out: `Run`s with counters, findings and times. It
prepares and checks launches; executing them is left to `machine`, counters and traces to `observe`,
texts to `report`.
"""
