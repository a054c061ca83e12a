"""Executes PTX's asynchronous instructions for both the compiled engine and the reference machine:
the tensor and bulk copies of TMA, tensor memory instructions (`tcgen05`), and the arrivals of these
operations at mbarriers. If the schedule of a launch makes operations complete late, the package
also delays per-lane copies (`cp.async`, `st.async`) until a thread waits for them. Its functions
read requests, operand rows and memory, and change memory, counts and queues. If a fault occurs, the
functions record it and return 1.

`program.requests` encodes instructions as requests and operand rows. When a copy's accesses race is
left to `detector`, its duration to `timing`.
"""
