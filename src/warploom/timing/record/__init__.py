"""Reduces the log of a launch to the record that the timing model replays.

`record` defines it: distinct streams of basic blocks and accesses, and for each warp the number of
its stream and base addresses; `records` builds it. `patterns` numbers the shapes of accesses with
their costs, `spins` drops iterations of polling loops, `mbarriers` finds the phases that accesses
signal and await, `predicted` adds blocks for which the log had no space, `order` schedules
instructions as a compiler would.

In: a log and a `Program`. Out: a `Record`. What instructions cost is left to `timing.work`, time to
`timing.engine`.
"""
