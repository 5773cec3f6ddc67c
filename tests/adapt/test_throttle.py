"""The share follows the limit in a line, and nothing is shed that fits or that shedding would not save."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.adapt.cost_fit import CostFit, Measurement, Work
from weir.adapt.cpu_limit import CpuLimit
from weir.adapt.throttle import choose_share

# Seconds: 1 is kept, 9 can be skipped.
FULL = Work(1.0, 9.0)
FIT = CostFit(tuple(Measurement(Work(1.0, 9.0 * z), 1.0, 9.0 * z) for z in (1.0, 0.5, 1.0, 0.25)))


@given(st.floats(1.3, 30.0))
def test_a_batch_takes_what_it_may(allowed: float) -> None:
    chosen = choose_share(FIT, FULL, CpuLimit(1.0, allowed))
    assert chosen.predicted <= 1.02 * allowed
    assert chosen.share == pytest.approx(min(1.0, (allowed - 1) / 9), abs=0.03)


def test_what_fits_is_exact() -> None:
    assert choose_share(FIT, FULL, CpuLimit(1.0, 10.1)).share == 1.0
    assert choose_share(FIT, FULL, CpuLimit(1.0, 9.9), is_exact=True).share == 1.0, (
        "it does not begin to shed"
    )
    assert choose_share(FIT, FULL, CpuLimit(1.0, 9.9), is_exact=False).share < 1.0, "it does not end either"


def test_the_mean_of_ten_batches_meets_the_limit() -> None:
    limit = CpuLimit(1.0, 5.0)
    even, over, under = (choose_share(FIT, FULL, limit, [x] * 9).share for x in (1.0, 1.05, 0.95))
    assert over < even < under


def test_where_skipping_saves_little_only_the_trigger_counts() -> None:
    """One second is kept and half a second is allowed: skipping all probes would still take twice that."""
    assert choose_share(FIT, FULL, CpuLimit(1.0, 0.5)).share == 1.0
    with_room = choose_share(FIT, FULL, CpuLimit(1.0, 0.5, room=5.5))
    assert with_room.is_hopeless and with_room.share == pytest.approx(0.5, abs=0.03)
    late = choose_share(FIT, FULL, CpuLimit(1.0, 0.5, room=0.0))
    assert late.is_hopeless and late.share == pytest.approx(0.02)


def test_what_is_only_assumed_of_probing_is_no_reason_to_give_up() -> None:
    """A tenth is stored and the rest probes; no other share has shown yet that none of it is fixed."""
    exact, limit = Work(0.1, 0.9), CpuLimit(1.0, 0.15)
    fit, share = CostFit((Measurement(exact, 0.1, 0.9),) * 3), 1.0
    for _ in range(5):
        throttle = choose_share(fit, exact, limit, is_exact=share == 1)
        assert not throttle.is_hopeless and throttle.share < 1
        share = throttle.share
        fit = fit.after(Measurement(exact.scale_root(share), 0.1, 0.9 * share))
    assert share == pytest.approx(0.05 / 0.9, abs=0.02)


def test_fixed_seconds_of_probing_that_were_seen_are() -> None:
    """Half of probing takes its time however few rows probe, so that no share meets the limit."""
    exact, limit = Work(0.1, 0.9), CpuLimit(1.0, 0.3)
    fit, share, was_hopeless = CostFit((Measurement(exact, 0.1, 0.9),) * 3), 1.0, False
    for _ in range(6):
        throttle = choose_share(fit, exact, limit, is_exact=share == 1, was_hopeless=was_hopeless)
        share, was_hopeless = throttle.share, throttle.is_hopeless
        fit = fit.after(Measurement(exact.scale_root(share), 0.1, 0.45 + 0.45 * share))
    assert was_hopeless and share == 1.0


def test_noise_at_the_limit_does_not_switch_shedding_on_and_off() -> None:
    """One second is kept: given up above the limit, and taken up again only well below it."""
    below, within, above = (CpuLimit(1.0, seconds) for seconds in (0.98, 1.05, 1.2))
    assert not choose_share(FIT, FULL, within).is_hopeless
    assert choose_share(FIT, FULL, below).is_hopeless
    assert choose_share(FIT, FULL, within, was_hopeless=True).is_hopeless
    assert not choose_share(FIT, FULL, above, was_hopeless=True).is_hopeless
