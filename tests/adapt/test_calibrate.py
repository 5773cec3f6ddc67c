"""Predicted against measured: the bytes of a state closely, the time of a batch only loosely."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise
from math import isfinite

import pytest

from weir.adapt.calibrate import calibrate_costs
from weir.plan.tree import Join, join
from weir.stats.unit_costs import TYPICAL
from weir_lab.bench.model import Trial, run_trial

BOTH = {"a": 600, "b": 400, "c": 500, "d": 300}
WINDOWS = {"a": 3.3, "b": 2.7, "c": 3.9, "d": 2.9}
SHARE = 1 / 900


def test_calibrated_costs_are_numbers_of_seconds() -> None:
    found = calibrate_costs()
    assert all(isfinite(seconds) and 0 <= seconds < 0.1 for seconds in asdict(found).values())
    assert found.visit > 0 and found.probe > 0 and found.cut > 0
    assert calibrate_costs() is found


def trial(plan: Join, *, equal: bool = False, band: bool = False) -> Trial:
    """Streams that share a key, or of which the first two lie in a band; always the same rows."""
    names = sorted(plan.streams)
    conditions = [f"{one}.k = {other}.k" for one, other in pairwise(names)]
    shares = {frozenset(pair): SHARE for pair in pairwise(names)}
    if band:
        conditions[0] = "abs(a.x - b.x) <= 0.0005"
        shares[frozenset("ab")] = 0.001
    return Trial(
        kind="bands" if band else "one key",
        on=" AND ".join(conditions),
        select="a.x AS ax, b.y AS bb",
        rates={name: BOTH[name] for name in names},
        windows={name: 3.3 if equal else WINDOWS[name] for name in names},
        keys=(round(1 / SHARE), 1),
        selectivities=shares,
        shape="mixed",
        plan=plan,
        seed=7,
    )


TRIALS = {
    "mjoin": trial(join("a", "b", "c")),
    "mjoin, one window": trial(join("a", "b", "c"), equal=True),
    "band": trial(join("a", "b", "c", orders=[[1, 2], [0, 2], [1, 0]]), band=True),
    "bjtree": trial(join(join("a", "b"), "c")),
    "bjtree, one window": trial(join(join("a", "b"), "c"), equal=True),
    "bjtree led by another": trial(join("a", join("c", "b"))),
    "bushy": trial(join(join("a", "b"), join("c", "d"))),
    "mixed": trial(join(join("a", "b", "c"), "d")),
    # Many rows below, of which one stream leaves early: what died is dropped when slices are merged.
    "dense below": replace(
        trial(join(join("a", "b"), "c")),
        on="a.k = b.k AND b.l = c.l",
        windows={"a": 6.6, "b": 4.1, "c": 3.9},
        keys=(150, 20_000),
        selectivities={frozenset("ab"): 1 / 150, frozenset("bc"): 1 / 20_000},
    ),
}


@pytest.mark.parametrize("name", TRIALS)
def test_memory_is_foretold_within_a_twentieth_and_time_within_a_factor(name: str) -> None:
    found = run_trial(TRIALS[name], calibrate_costs(), steady=16)
    predicted, kept = found.memory
    assert predicted == pytest.approx(kept, rel=0.05)
    seconds, taken = found.cpu
    assert taken / 4 < seconds < taken * 4


def test_typical_costs_are_within_a_factor_of_those_of_this_machine() -> None:
    found = calibrate_costs()
    for name in ("visit", "probe", "cut"):
        assert 1 / 10 < getattr(found, name) / getattr(TYPICAL, name) < 10
