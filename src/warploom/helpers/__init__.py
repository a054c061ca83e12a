"""Contains the runtime functions that compiled kernels call (helpers). They are written in Python,
and Numba compiles them to machine code.

`table` lists the helpers of all packages with their types, `compiler` compiles them, `objects`
finds their machine code, `calls` emits calls. Arguments are addresses of flat arrays and 64-bit
integers; a helper returns one integer. Loops over lanes that are hot have hand-written vector IR
(`lanewise`, `overlap`, `rising`, `deferred_counts`).

In: functions of `simt`, `cost`, `texture`, `asynchronous`, `detector`, `abi` and of this package.
Out: object code, and their addresses. When a helper is called is left to `lower`.
"""
