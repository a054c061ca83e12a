"""Determines which effects an instruction has in addition to its effects on registers and memory:
synchronization, asynchronous copies, accesses to the shared memory of other blocks in a cluster,
and events for observers. An instruction's effects depend only on the instruction itself.

In: instructions and a `Program`. Out: classifications and small data classes. What an event does is
left to `lower`, the reference machine and the detector.
"""
