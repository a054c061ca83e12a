"""Makes the errors that users read from the records of faults and deadlocks; both machines use
it."""
