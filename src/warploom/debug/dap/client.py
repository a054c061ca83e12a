"""Holds what requests of all kinds share: the client's connection, and the launch under
debugging."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.core.errors import WarploomError
from warploom.debug.dap.connection import Connection
from warploom.debug.session import Session


@dataclass
class Client:
    """The client of an adapter. `session` debugs the launch of a kernel that runs, if one does;
    `lines_from` is the number that the client gives the first line of a file."""

    connection: Connection
    session: Session | None = None
    lines_from: int = 1

    def opened(self) -> Session:
        """Returns the session. Raises WarploomError where no kernel runs."""
        if self.session is None:
            raise WarploomError("no kernel is being debugged")
        return self.session
