"""Explores behavior that the architecture leaves undefined: runs one launch in many legal execution
orders.

In: a launch, or a litmus test. Out: the results that differ, each with an order that leads to it.
Which outcomes PTX's memory model allows is left to `memory_model`.
"""
