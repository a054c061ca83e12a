"""Prepares a replay of machine code from the record of a launch in PTX. Finds the path of each warp
through the machine code, the operations issued on this path, and the memory accesses of these
operations.

In: a `Record`, a `Program` and its machine code. Out: a `Record` and work in machine instructions.
Reading machine code is left to `machinecode`, time to the engine.
"""
