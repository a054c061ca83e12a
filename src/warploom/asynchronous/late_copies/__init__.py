"""Defers per-lane copies until a thread waits for them, to expose missing waits. This applies to
`cp.async`, to `cp.async.bulk` between a block's own shared memory and global memory, and to
`st.async` and `red.async` (PTX ISA, "Asynchronous operations").

These copies are checked, counted and performed at issue. Under schedules that complete late
(`simt.product_groups`), the bytes that they overwrite are saved before, restored after, and written
when a thread waits for them:

    hold_copies (saves)  ->  ordinary execution  ->  defer_copies (restores)  ->  wait (writes)

TMA and `tcgen05`: `asynchronous.issue`.

In: the operands of such a copy. Out: memory as if the copy had not completed, and later its bytes.
Checks and counts are left to ordinary execution.
"""
