"""Explores what the architecture leaves undefined: one launch under many legal orders.

In: a launch, or a litmus test. Out: the results that differ, each with an order that leads to it.
Which outcomes PTX's memory model allows is left to `memory_model`.
"""
