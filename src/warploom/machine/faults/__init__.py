"""Builds the error messages for faults and deadlocks from the records that the compiled engine or
the reference machine writes.

In: the fault words or the states of waiting warps, and the program with its source positions. Out:
exceptions with text. Finding the fault is left to the checks of each machine.
"""
