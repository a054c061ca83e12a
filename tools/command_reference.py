"""Makes docs/commands.md: the help of every command.

python tools/command_reference.py            writes it
python tools/command_reference.py --check    says whether it is current
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from typer.testing import CliRunner

TARGET = Path(__file__).parent.parent / "docs" / "commands.md"

WIDTH = "92"

HEAD = """# Command line

This page shows the help of each command. Write shapes, such as the shape of a grid, as `16x8`.
`warploom --install-completion` installs completion for the shell.

- exit status 0: success
- 1: results differ (`explore`), errors were found (`check`), a condition does not hold (`litmus`),
  or the task is not done (`learn --check`)
- 2: invalid usage
- 3: compile error or PTX error
- 4: launch refused
- 5: kernel fault
"""


def reference() -> str:
    """Returns the text of the page."""
    os.environ.update(COLUMNS=WIDTH, TERMINAL_WIDTH=WIDTH)
    from warploom.cli.commands import COMMANDS
    from warploom.cli.main import app

    runner = CliRunner(env={"COLUMNS": WIDTH, "WARPLOOM_CACHE_DIR": "/tmp"})
    parts = [HEAD]
    for name, command in COMMANDS.items():
        if not command.helps:
            continue
        reported = runner.invoke(app, [name, "--help"], prog_name="warploom").output
        text = "\n".join(line.rstrip() for line in reported.strip().splitlines())
        parts.append(f"## warploom {name}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(
            TARGET.read_text("utf-8") != reference() and f"{TARGET} is not current: run this script"
        )
    TARGET.write_text(reference(), "utf-8")


if __name__ == "__main__":
    main()
