"""Issues asynchronous instructions (checks their operands, counts their accesses), and executes
them at once or queues them until a thread waits for them; for both machines (interpreter and
compiled kernels)."""
