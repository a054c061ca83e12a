"""The lessons on the command line: open, watch and grade them."""
