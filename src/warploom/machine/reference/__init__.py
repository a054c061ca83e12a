"""Executes a program one instruction at a time, in NumPy over the lanes of a warp: the readable
definition of the machine, with which compiled code is compared.

In: a `Launch`. Out: changed memory, counts, and events for who listens (debugger, recorder,
sanitizers, observers). Scheduling, costs, textures and copies are functions that it shares with
compiled code.
"""
