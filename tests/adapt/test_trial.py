"""A challenger stays only if it measurably finds more."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from weir.adapt.trial import Base, Measured, Trial
from weir.plan.tree import join
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop

BEFORE = Base(join("a", "b", "c"))
OTHER = Base(join("a", "b", "c"), Allowance(drop={"a": 0.5}), "random-drop")
TREE = Base(join(join("a", "b"), "c"))


def judge(before: Sequence[float], found: Sequence[float], ratio: float = 1.0) -> bool | None:
    trial = Trial(OTHER, BEFORE, Measured.of((1.0, recall, 1.0) for recall in before))
    for recall in found:
        trial = trial.after(1.0, recall, ratio)
    return trial.is_won(5.0)


def test_it_runs_for_a_window() -> None:
    assert judge([0.5] * 5, [0.7] * 4) is None
    assert judge([0.5] * 5, [0.7] * 5) is True
    assert judge([0.5] * 5, [0.5] * 5) is False
    assert judge([0.5] * 5, [0.3]) is None and judge([0.5] * 5, [0.3] * 2) is False, "which is clear soon"
    assert judge([0.5] * 5, [0.2]) is False, "which is clear at once"


def test_thinning_needs_no_proof_against_what_is_cleverer() -> None:
    trial = Trial(BEFORE, OTHER, Measured.of((1.0, recall, 1.0) for recall in (0.8, 0.0, 0.1)))
    for _ in range(5):
        trial = trial.after(1.0, 0.31, 1.0)
    assert trial.is_won(5.0) is True


def test_noise_is_no_gain() -> None:
    assert judge([0.3, 0.7, 0.5, 0.4, 0.6], [0.4, 0.7, 0.5, 0.7, 0.4]) is False


def test_more_cpu_is_no_gain() -> None:
    assert judge([0.5] * 5, [0.7] * 5, ratio=1.5) is False


def test_what_is_not_known_is_not_believed() -> None:
    trial = Trial(OTHER, BEFORE, Measured.of([(1.0, 0.5, 1.0)] * 5))
    for _ in range(5):
        trial = trial.after(1.0, None, 1.0)
    assert trial.is_won(5.0) is False


@pytest.mark.parametrize(("other", "change"), [(OTHER, "random-drop"), (TREE, "tree"), (BEFORE, "orders")])
def test_a_lost_trial_bars_its_kind(other: Base, change: str) -> None:
    assert BEFORE.name_change(other) == change


def test_shares_are_means_over_the_rows_that_come() -> None:
    rates = {"a": 3.0, "b": 1.0}
    thinned = Base(join("a", "b"), Allowance({Hop("a", "(a b)", "b"): 0.2}))
    assert thinned.mean_share(rates) == pytest.approx((3 * 0.2 + 1) / 4) and thinned.stored_share(rates) == 1
    dropping = Base(join("a", "b"), Allowance(drop={"a": 0.5}))
    assert dropping.stored_share(rates) == pytest.approx(2.5 / 4) and dropping.mean_share(rates) == 1
