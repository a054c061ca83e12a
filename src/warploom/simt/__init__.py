"""Schedules thread blocks and warps, and manages their SIMT state: active masks, divergence and
reconvergence, barriers, and clusters.

The functions work on flat arrays of 64-bit words. The reference machine calls them as Python,
compiled kernels call them as machine code (Numba). The layouts of the arrays are in
`schedule_layout` (launch, warp state) and `warp_table` (lanes of a warp).

In: the state of a launch and of a warp. Out: which warp runs next, with which lanes, and the
changed state. Executing instructions is left to the machines, the error of a deadlock to
`machine.faults`.
"""
