"""Implements the terminal interface of the debugger, with the commands of cuda-gdb.

In: lines that a user types, and a session. Out: text. Its texts come from `debug.session` and its
neighbors.
"""
