"""Implements the command line, with one module for each command.

In: the words of a command line. Out: text, JSON or files, and an exit code (`main`). What a verb
does is left to the packages that it calls: `host`, `report`, `clients`, `debug`, `ui`,
`validation`.
"""
