"""Reports of a run: sections of named values, as text and as JSON."""
