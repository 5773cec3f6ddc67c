from __future__ import annotations

import numpy as np
import pytest
from tests.adapt.simulated_machine import WINDOW

from weir.adapt.average import Average, lags_differ
from weir.stats.lag_histogram import LagHistogram, LagHistograms


def fed(*batches: tuple[float, float], is_count: bool = True) -> Average:
    found = Average()
    for total, exposure in batches:
        found = found.after(total, exposure, is_count)
    return found


def test_old_batches_fade() -> None:
    found = fed((100, 1), (110, 1), (120, 1))
    assert found.value == pytest.approx((0.64 * 100 + 0.8 * 110 + 120) / (0.64 + 0.8 + 1))


def test_a_jump_shows_within_two_batches() -> None:
    steady = [(100.0, 1.0)] * 20
    assert fed(*steady, (500, 1)).value == pytest.approx(180, rel=0.01), "one may be an accident"
    assert fed(*steady, (500, 1), (520, 1)).value == 520
    assert fed(*steady, (20, 1), (20, 1)).value == 20
    assert fed(*steady).after(500, 1, is_confirmed=True).value == 500
    assert fed(*steady, (500, 1), (20, 1)).value != 20, "one up and one down are no new level"


def test_few_counts_vary_by_chance_and_seconds_do_not() -> None:
    batches = [*[(2.0, 1.0)] * 9, (5.0, 1.0), (5.0, 1.0)]
    assert fed(*batches).value != 5
    assert fed(*batches, is_count=False).value == 5


def test_nothing_to_divide_by() -> None:
    assert Average().value is None
    assert fed((10, 0)).value is None
    assert fed((10, 2), (10, 0)).value == 5
    assert fed((0, 2), (0, 2)).value == 0


def test_what_is_not_told_any_more_stays_but_weighs_less() -> None:
    found = fed((90, 10))
    for _ in range(100):
        found = found.fade()
    assert found.value == pytest.approx(9) and found.total == pytest.approx(1)
    assert fed((0, 10)).fade() == fed((0, 10)), "no match among so many pairs weighs next to nothing anyway"


def test_samples_of_one_distribution_hardly_ever_differ() -> None:
    rng = np.random.default_rng(3)

    def drawn(middle: float) -> LagHistograms:
        found = np.clip(rng.normal(middle, 2.0, rng.integers(30, 200)), 0, 39).astype(int)
        return LagHistograms(
            "a", {"b": LagHistogram(-WINDOW, WINDOW, tuple(np.bincount(found, minlength=40)))}
        )

    same = [lags_differ(drawn(20), drawn(20), 0.05, results_each=1.0) for _ in range(500)]
    moved = [lags_differ(drawn(20), drawn(26), 0.05, results_each=1.0) for _ in range(500)]
    assert sum(same) <= 3 and all(moved)
    assert not lags_differ(drawn(20), drawn(26), 0.05, results_each=100.0), (
        "a few results, however often each was counted"
    )
