"""Writes and opens core files: a launch that went wrong, with all that it takes to run it again."""
