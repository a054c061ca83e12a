"""Issues, queues and completes asynchronous instructions, for both machines (interpreter and
compiled kernels)."""
