"""Designs: parts of a multiprocessor that a learner writes as a function in Python, a warp
scheduler, a prefetcher or a coalescer, and what they cost on kernels of `examples/`.

Schedulers and prefetchers run in the engine of modelled time (`timing.policies`) and are measured
in its cycles; coalescers group the addresses that accesses of a launch had. Each is ranked with
designs that are known.
"""
