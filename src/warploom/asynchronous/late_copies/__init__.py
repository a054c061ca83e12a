"""Copies of a warp's lanes that complete late: `cp.async`, `cp.async.bulk` between a block's own
shared memory and global memory, `st.async` and `red.async` (PTX ISA, "Asynchronous operations").

Their accesses are checked, counted and done as they are issued. Under schedules where they complete
late (`simt.product_groups`), what they wrote is then put back, and written when a thread waits for
it.
"""
