"""Recognises the effects of instructions beside values and memory: synchronisation, asynchronous
copies, accesses to a cluster, and events for observers."""
