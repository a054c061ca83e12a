"""Simulates SMs and the memory system below them cycle by cycle, in loops over flat arrays. Numba
compiles these loops.

Conventions of all modules here. `w` is `timing.layout`, the numbers in fields of records. `arrays`
are the arrays that all SMs read (`engine.machine.EngineArrays`); `sm` is the state of one SM, one
array, in which `warp`, `scheduler`, `flight`, `block` and the like are records (`timing.records`);
`memory` is the state of L2 and DRAM. `now` is the current cycle. A *flight* is a memory instruction
that has issued and not ended. A *quantum* is a number of cycles, less than the shortest latency
between an SM and what it shares with others, in which SMs therefore run independently of each other
(`engine.quantum`).

In: `EngineArrays` (a record, its work, parameters of a device) and a state. Out: the state some
cycles later, with its counters. What instructions cost is left to `timing.work`, the figures to
`timing.result`.
"""
