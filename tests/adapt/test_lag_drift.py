from __future__ import annotations

import numpy as np
from tests.adapt.simulated_machine import WINDOW

from weir.adapt.lag_drift import lags_differ
from weir.stats.lag_histogram import LagHistogram, LagHistograms


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
