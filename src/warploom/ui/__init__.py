"""Shows launches in the browser: records launches on request, runs the local server, and builds and
exports the page.

In: requests of the page (`schema`) and traces. Out: HTML with data, and answers as JSON. Running a
launch is left to `host` in a child process, drawing to the page (`web/`).
"""
