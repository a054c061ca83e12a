"""Classifies instructions by their effects beyond registers: asynchronous work and what completes
it, synchronisation, accesses to other blocks of a cluster, events for observers.
"""
