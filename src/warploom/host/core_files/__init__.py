"""Writes and opens core files. A core file contains a launch that failed or was captured, with all
data that is needed to run the launch again.

In: a launch. Out: a file, and from it the same launch on memory at the same addresses. Showing what
went wrong is left to `debug.post_mortem`.
"""

SUFFIX = ".wlcore"
"""How the names of core files end: here, so that a command line is read without the engine."""
