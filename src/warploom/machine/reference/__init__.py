"""Executes a program one instruction at a time, with NumPy operations over the lanes of a warp.
This package is a readable definition of how the simulated GPU behaves, and tests compare compiled
code with it.

In: a `Launch`. Out: changed memory, counts, and events for who listens (debugger, recorder,
sanitizers, observers). Scheduling, costs, textures and copies are functions that it shares with
compiled code.
"""
