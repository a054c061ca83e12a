"""Issues, queues and completes asynchronous instructions, for both machines."""
