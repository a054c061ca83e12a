"""Lowers accesses to memory: emits the guard, the data movement, the cost counting and the exit of
an access plan (`ir.access_plans`)."""
