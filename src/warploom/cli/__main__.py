"""`python -m warploom.cli`: the program `warploom`."""

from warploom.cli.main import main

main()
