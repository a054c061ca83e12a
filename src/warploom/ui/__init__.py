"""Showing a run in the browser: recording on request, the local server, the page and its export.

In: requests of the page (`schema`) and traces. Out: HTML with data, and answers as JSON. Running a
launch is left to `host` in a child process, drawing to the page (`web/`).
"""
