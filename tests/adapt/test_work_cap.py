"""The cap on work: from the budget, the length of a batch and what a step takes."""

from __future__ import annotations

import pytest

from weir.adapt.average import Average
from weir.adapt.work_cap import (
    assume_step_seconds,
    derive_work_cap,
    estimate_step_seconds,
    find_batch_length,
)
from weir.stats.unit_costs import TYPICAL, UnitCosts


def test_a_cap_grows_with_the_budget_and_falls_with_the_cost_of_a_step() -> None:
    assert derive_work_cap(2.0, 1e-8) == 2 * derive_work_cap(1.0, 1e-8) == 4 * derive_work_cap(1.0, 2e-8)
    assert derive_work_cap(1e-9, 1.0) == 1


def test_many_measured_steps_outweigh_the_assumption_and_few_do_not() -> None:
    assert estimate_step_seconds(Average(), 2e-8) == 2e-8
    # A calm batch: 20 ms for a thousand steps are not 20 µs a step.
    assert estimate_step_seconds(Average(0.02, 1000), 2e-8) == pytest.approx(4e-8, rel=0.01)
    assert estimate_step_seconds(Average(10.0, 1e8), 2e-8) == pytest.approx(1e-7, rel=0.02)


def test_wide_results_take_longer() -> None:
    assert assume_step_seconds(TYPICAL, 30) > assume_step_seconds(TYPICAL, 2) >= TYPICAL.probe
    assert assume_step_seconds(UnitCosts(compare=1.0, match=2.0, out=0.5), 6) == 3.0


def test_the_length_of_a_batch_is_its_trigger_or_the_event_time_it_spans() -> None:
    assert find_batch_length(2.0, 60.0, 5.0) == 2.0
    assert find_batch_length(None, 60.0, 5.0) == 60.0
    assert find_batch_length(None, None, 5.0) == 20.0  # nobody knows how long this one is
    assert find_batch_length(None, None, 0.0) is None  # a backlog
    assert find_batch_length(None, 0.0, 0.0) is None
