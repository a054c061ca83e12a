"""Records view words by name, in Python and in compiled code."""

from __future__ import annotations

import ctypes
from typing import Annotated, Any

import numpy as np
import pytest

from warploom.simt.lane_counts import register_jitables
from warploom.simt.record_copies import clear_record, copy_record
from warploom.simt.records import RECORDS, WordRecord, Words


class Account(WordRecord, align=4):
    total: int
    parts: Annotated[Words, 3]
    last: int
    newest: Annotated[int, "last"]


class Later(WordRecord):
    value: int


class Bank(WordRecord):
    """A record with two views of the same words, and one of others."""

    code: int
    first: Account
    raw: Annotated[Later, "first"]
    second: Account


class Message(WordRecord):
    """A record that any number of words follow."""

    kind: int
    text: Annotated[Words, 0]


def add_part(words: Words, index: int, value: int) -> int:
    """Adds to part 1 of account `index`, behind two words of another kind, and of the first one."""
    account = Account(words, 2, index)
    account.parts[1] += value
    account.total += account.parts[1]
    account.newest = value
    first = Account(account, account.at - index * Account.WORDS)
    first.total -= account.last
    return account.at + Account.last


def test_fields_are_laid_out_in_order() -> None:
    offsets = Account.total, Account.parts, Account.last, Account.newest
    assert offsets == (0, 1, 4, 4)
    assert Account.WORDS == 8  # five words, rounded up to a multiple of four


def test_a_field_of_0_words_has_all_that_follow() -> None:
    message = Message(np.arange(5), 1)
    assert Message.WORDS == 1
    assert message.text.tolist() == [2, 3, 4]


def test_packed_words_are_those_of_the_fields() -> None:
    assert Account.pack(total=3, newest=-1) == [3, 0, 0, 0, -1, 0, 0, 0]
    with pytest.raises(KeyError):
        Account.pack(number=1)


def test_python_and_compiled_code_access_the_same_words() -> None:
    expected = np.zeros(20, np.int64)
    expected[[2, 10, 12, 14]] = -5, 5, 5, 5
    in_python = np.zeros(20, np.int64)
    assert add_part(in_python, 1, 5) == 14
    assert in_python.tolist() == expected.tolist()

    register_jitables()
    import numba

    numba_: Any = numba
    compiled = numba_.cfunc("int64(CPointer(int64), int64, int64)", nopython=True)(add_part)
    in_machine_code = np.zeros(20, np.int64)
    pointer = in_machine_code.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    assert compiled.ctypes(pointer, 1, 5) == 14
    assert in_machine_code.tolist() == expected.tolist()


def read_later(words: Words) -> int:
    account = Account(words, 0)
    return Later(account, 1).value + Later.WORDS


def test_a_record_that_is_registered_later_is_viewed_from_an_earlier_one() -> None:
    if Later in RECORDS:
        RECORDS.remove(Later)
    register_jitables()
    RECORDS.append(Later)
    register_jitables()
    import numba

    numba_: Any = numba
    compiled = numba_.cfunc("int64(CPointer(int64))", nopython=True)(read_later)
    words = np.arange(40, 48)
    pointer = words.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    assert compiled.ctypes(pointer) == read_later(words) == 42


def move_parts(words: Words) -> int:
    """Adds what is at two views of the same words to a part of the record behind them, which then
    moves to the other one's place."""
    bank = Bank(words, 1)
    bank.first.total = bank.raw.value + 1
    bank.second.parts[2] += bank.first.total
    copy_record(bank.first, bank.second)
    clear_record(bank.second)
    return bank.first.parts[2] + Bank.second


def test_a_field_may_be_a_record() -> None:
    assert (Bank.first, Bank.raw, Bank.second, Bank.WORDS) == (1, 1, 9, 17)
    register_jitables()
    import numba

    numba_: Any = numba
    compiled = numba_.cfunc("int64(CPointer(int64))", nopython=True)(move_parts)
    in_python, in_machine_code = np.arange(20), np.arange(20)
    pointer = in_machine_code.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    # 2 + 1, added to 13, and the offset 9.
    assert move_parts(in_python) == compiled.ctypes(pointer) == 16 + 9
    moved = [10, 11, 12, 16, 14, 15, 16, 17]
    expected = [0, 1, *moved, *[0] * 8, 18, 19]
    assert in_python.tolist() == in_machine_code.tolist() == expected
