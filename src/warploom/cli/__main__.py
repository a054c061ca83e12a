"""`python -m warploom.cli`: the program `warploom`."""

from warploom.cli.start import main

main()
