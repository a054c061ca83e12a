"""Defines the binary interface between compiled kernels and their host: the slots of the
environment, the counters, the layout of a warp's context, access types, range caches, and the log
that recording code writes.

Each layout is stated once, here; the emitter (`lower`), the helpers and the host import it.

In: facts of a `Program` and a kernel variant. Out: constants, record types and layouts. Emitting
code that uses them is left to `lower`, allocating and filling the buffers to `machine.compiled`.
"""
