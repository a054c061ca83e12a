"""Recognises, from instructions alone, their effects beside values and memory: synchronisation,
asynchronous copies, accesses to a cluster, and events for observers."""
