"""Runs launches in compiled code: their buffers, threads and code tiers, and the counts that they
leave.

In: a `Launch`. Out: an outcome with the counts. Compiling is left to `compilation`; what code does
in a launch, to the kernel and the helpers.
"""
