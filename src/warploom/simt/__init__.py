"""Schedules warps and keeps their SIMT state: blocks, barriers, clusters, divergence and
reconvergence.

Functions over flat arrays, which the reference machine calls as Python and compiled code as machine
code. Layouts of these arrays: `schedule_layout` and `warp_table`.
"""
