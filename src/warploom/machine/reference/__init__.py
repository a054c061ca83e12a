"""Executes a program one instruction at a time, in NumPy over the lanes of a warp: the readable
definition of the machine, with which compiled code is compared.
"""
