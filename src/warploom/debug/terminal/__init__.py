"""The debugger in a terminal, with the commands of cuda-gdb.

In: lines that a user types, and a session. Out: text. What it says is left to `debug.session` and
its neighbours.
"""
