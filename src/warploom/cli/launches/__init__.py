"""Prepares the launches that commands run: kernels in files, launches captured from programs, and
saved launches."""
