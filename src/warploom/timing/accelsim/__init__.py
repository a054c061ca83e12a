"""Writes traces of machine code in Accel-Sim's format, and reads traces in this format to model
their time.

In: a launch's record and its machine code, or files. Out: files, or a record and work that
`timing.replay` runs. Reading machine code is left to `machinecode`.
"""
