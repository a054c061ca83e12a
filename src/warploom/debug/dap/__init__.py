"""Implements a Debug Adapter Protocol server, through which editors use the debugger.

In: requests of the protocol as JSON, and a session. Out: responses and events. Their texts come
from `debug.session` and its neighbors.
"""
