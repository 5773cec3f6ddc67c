"""Predicted against measured: the bytes of a state closely, the time of a batch only loosely."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import pairwise
from math import isfinite

import numpy as np
import pytest

from weir.adapt import calibrate
from weir.adapt.calibrate import calibrate_costs
from weir.plan.cost import cost
from weir.plan.tree import Join, join
from weir.stats.unit_costs import TYPICAL, UnitCosts
from weir_lab.bench.model import Trial, run_trial

BOTH = {"a": 600, "b": 400, "c": 500, "d": 300}
WINDOWS = {"a": 3.3, "b": 2.7, "c": 3.9, "d": 2.9}
SHARE = 1 / 900


def test_calibrated_costs_are_numbers_of_seconds() -> None:
    found = calibrate_costs()
    assert all(isfinite(seconds) and 0 <= seconds < 0.1 for seconds in asdict(found).values())
    assert calibrate_costs() is found


def modelled_equations(costs: UnitCosts, noise: float) -> list[list[float]]:
    """The equations of a machine whose phases take what the model says, give or take some noise."""
    rng = np.random.default_rng(3)
    equations = []
    for sample in calibrate._SAMPLES:
        joined = sample.build_query()
        seconds = [
            cost(sample.build_graph(joined, only(costs, phase)), sample.plan).cpu * rng.lognormal(0, noise)
            for phase in calibrate._PHASES
        ]
        equations += calibrate._equations(sample, joined, seconds)
    return equations


def only(costs: UnitCosts, names: tuple[str, ...]) -> UnitCosts:
    return UnitCosts(**{name: getattr(costs, name) for name in names})


def test_costs_are_found_in_the_times_of_a_machine_unlike_the_typical_one() -> None:
    slow = UnitCosts(**{name: 5 * seconds for name, seconds in asdict(TYPICAL).items()})
    found = calibrate._fit(modelled_equations(slow, noise=0))
    assert asdict(found) == pytest.approx(asdict(slow), rel=0.01)


def test_no_cost_is_called_nothing_on_a_busy_machine() -> None:
    found = calibrate._fit(modelled_equations(TYPICAL, noise=0.8))
    assert all(getattr(found, name) >= seconds / 30 for name, seconds in asdict(TYPICAL).items())
    assert 1 / 10 < found.visit / TYPICAL.visit < 10


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
