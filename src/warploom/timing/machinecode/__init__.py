"""Converts the record of a launch from PTX instructions to machine instructions, which the timing
model then replays. Finds the path of each warp through the machine code, the operations issued on
this path, and the memory accesses of these operations.

In: a `Record`, a `Program` and its machine code. Out: a `Record` and work in machine instructions.
Reading machine code is left to `machinecode`, time to the engine.
"""
