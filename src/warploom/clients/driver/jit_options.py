"""Options of loading and linking: where logs go; others change nothing here."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from warploom.clients.driver.results import DriverError
from warploom.clients.driver.words import int_at, word_at

MAX_REGISTERS = 0
INFO_LOG, INFO_SIZE, ERROR_LOG, ERROR_SIZE = 3, 4, 5, 6


@dataclass
class Options:
    """The buffers for what is said and for errors, the size of the latter, and where the caller
    wants to know how much was written; the limit of registers a thread, 0 for none."""

    info_log: int = 0

    error_log: int = 0
    error_size: int = 0
    error_filled: int = 0
    info_filled: int = 0
    registers: int = 0

    @contextmanager
    def reporting(self) -> Generator[None]:
        """Copies what a DriverError explains to the caller's log too."""
        if self.info_filled:
            size = ctypes.c_uint64.from_address(self.info_filled)
            if self.info_log and size.value & 0xFFFFFFFF:
                ctypes.c_char.from_address(self.info_log).value = b"\0"
            size.value = 0
        try:
            yield
        except DriverError as error:
            self._write(error.explained)
            raise
        self._write("")

    def _write(self, text: str) -> None:
        if not self.error_log or not self.error_size:
            return
        data = text.encode()[: self.error_size - 1]
        ctypes.memmove(self.error_log, data + b"\0", len(data) + 1)
        ctypes.c_uint.from_address(self.error_filled).value = len(data)


def read_options(count: int, names: int, values: int) -> Options:
    """Returns the options of a call; a size is handed over in the place of a pointer."""
    options = Options()
    for index in range(count & 0xFFFFFFFF):
        place = values + 8 * index
        number = int_at(names + 4 * index)
        if number == MAX_REGISTERS:
            options.registers = word_at(place) & 0xFFFFFFFF
        elif number == INFO_LOG:
            options.info_log = word_at(place)
        elif number == INFO_SIZE:
            options.info_filled = place
        elif number == ERROR_LOG:
            options.error_log = word_at(place)
        elif number == ERROR_SIZE:
            options.error_size = word_at(place) & 0xFFFFFFFF
            options.error_filled = place
    return options
