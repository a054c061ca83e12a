"""The reconvergence stack by itself: who runs where, and who has met."""

from __future__ import annotations

from warploom.machine.reference.simt_stack import Entry, Side, SimtStack

EXIT = 99


def test_both_sides_of_a_branch_run_and_meet() -> None:
    stack = SimtStack(EXIT, active=0b1111)
    assert stack.diverge(7, 3, taken=Side(2, 0b0011), through=Side(1, 0b1100)) == []
    assert (stack.block, stack.active) == (1, 0b1100)
    assert stack.arrive(3) == []
    assert (stack.block, stack.active) == (2, 0b0011)
    assert stack.arrive(3) == [7]
    assert (stack.block, stack.active, stack.entries) == (3, 0b1111, [])


def test_a_side_that_is_already_there_only_waits() -> None:
    stack = SimtStack(EXIT, active=0b1111)
    stack.diverge(7, 3, taken=Side(3, 0b0011), through=Side(1, 0b1100))
    assert (stack.block, stack.active) == (1, 0b1100)
    assert stack.entries == [Entry(3, 0b1111, 7, None)]
    assert stack.arrive(3) == [7]
    assert (stack.block, stack.active) == (3, 0b1111)


def test_lanes_leave_a_loop_one_after_another_under_one_entry() -> None:
    stack = SimtStack(EXIT, active=0b111)
    stack.diverge(5, 4, taken=Side(1, 0b110), through=Side(4, 0b001))
    stack.diverge(5, 4, taken=Side(1, 0b100), through=Side(4, 0b010))
    assert (stack.block, stack.active, len(stack.entries)) == (1, 0b100, 1)
    assert stack.arrive(4) == [5]
    assert (stack.block, stack.active) == (4, 0b111)


def test_inner_and_outer_branches_that_meet_in_one_place() -> None:
    stack = SimtStack(EXIT, active=0b1111)
    stack.diverge(1, 9, taken=Side(5, 0b0011), through=Side(2, 0b1100))
    stack.diverge(2, 9, taken=Side(4, 0b0100), through=Side(3, 0b1000))
    assert stack.arrive(9) == []
    assert (stack.block, stack.active) == (4, 0b0100)
    assert stack.arrive(9) == [2]  # the inner pair met, and the outer other side goes on
    assert (stack.block, stack.active) == (5, 0b0011)
    assert stack.arrive(9) == [1]
    assert (stack.block, stack.active) == (9, 0b1111)


def test_at_the_exit_nobody_meets() -> None:
    stack = SimtStack(EXIT, active=0b11)
    stack.diverge(1, EXIT, taken=Side(5, 0b01), through=Side(2, 0b10))
    assert stack.arrive(EXIT) == []
    assert (stack.block, stack.active, stack.ended) == (5, 0b01, False)
    assert stack.arrive(EXIT) == []
    assert (stack.ended, stack.active, stack.entries) == (True, 0, [])


def test_two_sides_with_one_target_that_is_where_they_meet() -> None:
    stack = SimtStack(EXIT, active=0b11)
    assert stack.diverge(1, 4, taken=Side(4, 0b01), through=Side(4, 0b10)) == [1]
    assert (stack.block, stack.active, stack.entries) == (4, 0b11, [])
