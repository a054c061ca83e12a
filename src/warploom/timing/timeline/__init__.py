"""Models when the work of several streams runs on a device: which kernels and copies overlap, and
the total time of the work.

In: works in the order of their issue, each with its demand (its time alone, the block slots that it
fills, the throughputs that it uses) and its position in the order of streams. Out: for each when it
begins and ends. The demand of a kernel comes from the replay of its launch (`timing.result`); a
replay is of one launch, so what kernels that run beside each other do to each other's caches is not
modelled.
"""
