"""The debugger in a terminal, with the commands of cuda-gdb.

In: lines that a user types, and a session. Out: text. Its texts come from `debug.session` and its
neighbours.
"""
