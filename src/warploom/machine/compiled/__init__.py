"""Runs launches in compiled code: manages their buffers, threads and code tiers, and reads the
resulting counts.

In: a `Launch`. Out: an outcome with the counts. Compiling is left to `compilation`; what code does
in a launch, to the kernel and the helpers.
"""
