"""The Python API: devices, buffers, modules, kernels and runs."""
