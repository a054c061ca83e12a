"""The multiprocessors of blocks, by hand."""

from __future__ import annotations

from warploom.simt.placement import sm_of


def test_single_blocks_go_round_all_multiprocessors() -> None:
    assert [sm_of(block, 0, 1, 3) for block in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_cluster_has_multiprocessors_side_by_side() -> None:
    """Of seven, three clusters of two take six; the seventh has none."""
    found = [[sm_of(cluster, rank, 2, 7) for rank in (0, 1)] for cluster in range(4)]
    assert found == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_a_cluster_of_more_blocks_than_there_are_multiprocessors() -> None:
    assert [sm_of(1, rank, 4, 2) for rank in range(4)] == [0, 1, 0, 1]
