"""Lowers accesses to memory: guards, moves, costs and exits of an access plan
(`ir.access_plans`)."""
