"""Detects accesses that PTX's memory model leaves unordered, over one stream of events of a launch
(docs/decisions/0032-happens-before.md explains the algorithm).

In: accesses, barriers, fences and copies in the order of their execution; out: findings in the
detector's state (`layout`). In these files `state` is that state and `event` the event.
"""
