"""Issues asynchronous instructions for both the compiled engine and the reference machine: checks
their operands, counts their accesses, and either executes them immediately or queues them until a
thread waits for them.

In: a request and a row of operands for each lane. Out: counts, faults, changed memory, or entries
of a queue. Moving the bytes is left to `tensors`, products and layouts to `tensor_memory`, copies
by single lanes to `late_copies`.
"""
