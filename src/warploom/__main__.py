"""Runs the program `warploom` by `python -m warploom`, which needs no script on the PATH."""

from warploom.cli.__main__ import main

if __name__ == "__main__":
    main()
