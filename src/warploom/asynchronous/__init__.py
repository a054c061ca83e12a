"""Executes PTX's asynchronous instructions for both machines (interpreter and compiled kernels):
the tensor and bulk copies of TMA, tensor memory (`tcgen05`), and the arrivals of both at mbarriers.
In launches that explore late completion, it also delays the copies of lanes (`cp.async`,
`st.async`) until a thread waits for them. Functions read requests, operand rows and memory, and
change memory, counts and queues; a fault is recorded and returned as 1.

`program.requests` encodes instructions as requests and operand rows. When a copy's accesses race is
left to `detector`, its duration to `timing`.
"""
