"""Holds the functions that compiled kernels call: Python that Numba compiles to machine code.

`table` lists them with their types, `compiler` and `objects` make and find their machine code,
`calls` emits calls. In: flat arrays and addresses; out: an integer or nothing.
"""
