"""Runs hardware designs, and measures the cost of the kernels in `examples/` with each design. A
design is a part of a multiprocessor (a warp scheduler, a prefetcher or a coalescer) that a learner
writes as a Python function.

Schedulers and prefetchers run in the engine of modelled time (`timing.policies`) and are measured
in its cycles; coalescers group the addresses that accesses of a launch had. Each is ranked with
designs that are known.
"""
