"""Finds errors that hardware does not report: out-of-bounds accesses, data races, barriers that
only some threads execute, reads of uninitialized memory, leaks, and races between streams.

`detector` detects them in one launch; this package describes the launch to it (`sites`,
`unchecked`, `state`), passes it the events of the reference machine (`events`), and makes findings
of what it reports (`report`).

In: launches, with the tools that a user chose. Out: findings, each with advice and source lines.
"""
