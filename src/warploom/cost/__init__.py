"""Computes the cost of one warp-wide memory access according to the rules of a device: sectors,
transactions, wavefronts, bank conflicts, atomic passes, and cache hits.

A *rule* is a function of an address for each lane, an active mask and the bytes per lane; it adds
its counts to the counters of an access (`fields`). `device_rules` selects the rules of a device.

In: addresses, an active mask, bytes per lane, facts of the device. Out: counts in counters.

Left to others: which accesses a kernel makes (`program.accesses`), when a rule is called or a count
is cached (`lower.access`, `machine`), and the duration of traffic (`timing`).
"""
