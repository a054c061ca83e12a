"""Recognizes, from instructions alone, their effects other than on registers and memory:
synchronization, asynchronous copies, accesses to a cluster, and events for observers.

In: instructions and a `Program`. Out: classifications and small data classes. What an event does is
left to `lower`, the reference machine and the detector.
"""
