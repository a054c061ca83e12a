"""Issues, queues and completes asynchronous requests, for both machines."""
