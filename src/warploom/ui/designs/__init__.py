"""Runs designs, and measures what they cost on kernels of `examples/`. A design is a part of a
multiprocessor that a learner writes as a Python function: a warp scheduler, a prefetcher or a
coalescer.

Schedulers and prefetchers run in the engine of modelled time (`timing.policies`) and are measured
in its cycles; coalescers group the addresses that accesses of a launch had. Each is ranked with
designs that are known.
"""
