"""Counts of partitions add up to those of the batch."""

from __future__ import annotations

from weir.stats.batch_counts import BatchCounts, count_steps
from weir.stats.hop import Hop, HopStats

HOP, OTHER = Hop("a", "(a b)", "b"), Hop("b", "(a b)", "a")


def test_partitions_add_up() -> None:
    first = BatchCounts({"a": 3, "b": 1}, late={"a": 1}, results=2, hops={HOP: HopStats(3, 4, 2)}, oldest=5)
    second = BatchCounts(
        {"a": 4}, dropped={"a": 2}, stale=1, hops={HOP: HopStats(1), OTHER: HopStats(skipped=7)}
    )
    total = first + second
    assert total.rows_in == {"a": 7, "b": 1} and total.rows_admitted == {"a": 4, "b": 1}
    assert (total.results, total.stale, total.oldest) == (2, 1, 5)
    assert total.hops == {HOP: HopStats(4, 4, 2), OTHER: HopStats(skipped=7)}
    assert total.shed == 9 and count_steps(total.hops.values()) == 10


def test_nothing_adds_nothing() -> None:
    counts = BatchCounts({"a": 3}, hops={HOP: HopStats(1, 2, 3, 0.5)}, oldest=1)
    assert counts + BatchCounts() == BatchCounts() + counts == counts
