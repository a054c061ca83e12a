"""Executes PTX's asynchronous instructions for both machines (interpreter and compiled kernels):
tensor copies (TMA), tensor memory (`tcgen05`), mbarriers, and copies that are performed only at the
wait for them.

In: requests and operand rows (`program.requests` encodes them), and memory. Out: changed memory,
counts and faults. When a copy's accesses race is left to `detector`, its duration to `timing`.
"""
