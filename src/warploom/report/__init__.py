"""What a run has to say: sections of named values, as text and as JSON."""
