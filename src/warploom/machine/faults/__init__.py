"""Builds the error messages for faults and deadlocks from the records that both machines write.

In: the fault words or the states of waiting warps, and the program with its source positions. Out:
exceptions with text. Finding the fault is left to the checks of each machine.
"""
