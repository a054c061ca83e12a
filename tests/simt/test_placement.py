"""Checks the assignment of slots to multiprocessors against hand-written lists."""

from __future__ import annotations

from warploom.simt.placement import sm_of


def test_single_blocks_are_assigned_round_robin() -> None:
    assert [sm_of(slot, 1, 3) for slot in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_cluster_occupies_neighbouring_multiprocessors() -> None:
    """Three clusters of two blocks occupy six of seven multiprocessors; the seventh stays empty."""
    found = [[sm_of(2 * cluster + rank, 2, 7) for rank in (0, 1)] for cluster in range(4)]
    assert found == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_a_cluster_of_more_blocks_than_there_are_multiprocessors() -> None:
    assert [sm_of(4 + rank, 4, 2) for rank in range(4)] == [0, 1, 0, 1]
