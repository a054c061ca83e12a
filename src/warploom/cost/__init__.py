"""Computes what one warp-wide memory access costs by the rules of a device: sectors, transactions,
wavefronts, bank conflicts, atomic passes, cache hits.

In: addresses by lane, an active mask, a size; out: counts, added to a row of counters (`fields`).
`device_rules` chooses the functions of a device.
"""
