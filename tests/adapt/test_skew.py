from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weir.adapt.skew import SkewMonitor, estimate_work, is_uneven
from weir.codec import from_json, to_json
from weir.stats.hop import Hop, HopStats


def test_skew_takes_several_uneven_batches_in_a_row() -> None:
    monitor = SkewMonitor()
    for uneven in (True, True, False, True, True):
        monitor = monitor.after(100, 1000, uneven)
        assert not monitor.is_skewed
    assert monitor.after(100, 1000, True).is_skewed
    assert from_json(SkewMonitor, to_json(monitor)) == monitor


def test_the_rate_follows_the_last_batches() -> None:
    assert SkewMonitor().rate == 0
    monitor = SkewMonitor()
    for rows in [100] * 20 + [900] * 6:
        monitor = monitor.after(rows, 1000, False)
    assert 0.85 < monitor.rate < 0.9


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.integers(1, 8), st.floats(0, 1))
def test_even_work_is_never_shared(seconds: list[float], cores: int, extra: float) -> None:
    count = len(seconds)
    assert not is_uneven([1.0] * count, count, cores, extra)
    if is_uneven(seconds, count, cores, extra):
        assert max(seconds) > sum(seconds) / min(count, cores) + extra


def test_small_work_is_not_worth_a_second_job() -> None:
    assert is_uneven([0.2, 0.0], 2, 2, extra=0.0)
    assert not is_uneven([0.2, 0.0], 2, 2, extra=0.3)


def test_work_is_rows_and_comparisons() -> None:
    hop = Hop("a", "(a b)", "b")
    few, many = (estimate_work(10, {hop: HopStats(10, comparisons, 0, 0.0)}) for comparisons in (10, 10**6))
    assert 0 < few < many and 0.01 < many < 0.1
