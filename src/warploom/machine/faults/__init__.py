"""Builds the error messages of faults and deadlocks from the records that the machines leave; both
machines use it."""
