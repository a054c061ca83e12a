"""Showing a run in the browser: recording on request, the local server, the page and its export."""
