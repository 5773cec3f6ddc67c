"""Seconds of batches are predicted from what they do, whatever the machine and however thinned."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.adapt.cost_fit import CostFit, Measurement, Work
from weir.codec import from_json, to_json


def measure(kept: float, fixed: float, root: float, share: float, noise: float = 1.0) -> Measurement:
    """A batch on a machine with these factors, of which a share of the driver rows probes."""
    work = Work(1.0, 3.0 * share)
    return Measurement(work, noise * kept * work.kept, noise * (fixed + root * work.root))


def fit(batches: list[Measurement]) -> CostFit:
    known = CostFit()
    for batch in batches:
        known = known.after(batch)
    return known


factors = st.floats(0.001, 100)


@settings(max_examples=100, deadline=None)
@given(kept=factors, root=factors, part=st.floats(0, 0.4), seed=st.integers(0, 99))
def test_shares_that_vary_show_what_thinning_saves(kept: float, root: float, part: float, seed: int) -> None:
    rng, fixed = np.random.default_rng(seed), part * 3 * root
    known = fit(
        [measure(kept, fixed, root, share, np.exp(rng.normal(0, 0.02))) for share in (1, 1, 0.5, 0.6)]
    )
    for share in (0.4, 0.8):
        batch = measure(kept, fixed, root, share)
        assert known.predict(batch.work) == pytest.approx(batch.seconds, rel=0.15)


@settings(max_examples=50, deadline=None)
@given(kept=factors, root=factors)
def test_one_share_is_predicted_exactly_and_probing_is_mostly_skippable(kept: float, root: float) -> None:
    known = fit([measure(kept, 0.0, root, 1.0)] * 3)
    cannot, can = known.split(Work(1.0, 3.0))
    assert cannot + can == pytest.approx(kept + 3 * root, rel=0.01)
    assert can == pytest.approx(0.9 * 3 * root, rel=0.1)


def test_one_batch_that_is_disturbed_is_not_believed_and_two_are() -> None:
    usual, slow = measure(1, 0, 1, 1), measure(3, 0, 3, 1)
    steady = fit([usual] * 6)
    assert steady.after(slow).predict(usual.work) == pytest.approx(usual.seconds, rel=0.01)
    assert steady.after(slow).after(usual).disturbed is None
    assert steady.after(slow).after(slow).predict(usual.work) == pytest.approx(slow.seconds, rel=0.01)


def test_a_slow_batch_and_a_fast_one_are_two_disturbances() -> None:
    usual, slow, fast = measure(1, 0, 1, 1), measure(3, 0, 3, 1), measure(0.3, 0, 0.3, 1)
    known = fit([*[usual] * 6, slow, fast])
    assert known.disturbed == fast
    assert known.predict(usual.work) == pytest.approx(usual.seconds, rel=0.01)
    assert known.after(fast).predict(usual.work) == pytest.approx(fast.seconds, rel=0.01)


def test_a_fit_survives_json_and_forgets() -> None:
    known = fit([measure(1, 0.1, 1, share / 40) for share in range(20, 60)])
    assert len(known.batches) == 24
    assert from_json(CostFit, json.loads(json.dumps(to_json(known)))) == known


def test_batches_without_rows_or_probes_teach_nothing_and_break_nothing() -> None:
    assert CostFit().after(Measurement(Work(0.0, 0.0), 0.0, 0.0)) == CostFit()
    idle = CostFit().after(Measurement(Work(1.0, 0.0), 0.5, 0.0))
    assert idle.predict(Work(2.0, 0.0)) == pytest.approx(1.0)
