"""What is true of the streams in a phase, read off the rows: no part of weir's adaptation is asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from weir.adapt.estimate import estimate_join_graph
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts
from weir_lab.regret.play import ask
from weir_lab.regret.scenarios import SETTLING, Scenario
from weir_lab.regret.streams import NEAR, SECOND, WINDOW, Delta

_BUCKETS = 40
# Streams of which no pair matched in the rows at hand match at least this often.
_LEAST_SHARE = 1e-6


def true_graph(scenario: Scenario, feed: Sequence[Delta], phase: int, costs: UnitCosts) -> JoinGraph:
    """The join graph at the end of a phase: rates as stated, shares of pairs as counted in a window."""
    end = scenario.start_of(phase) + scenario.phases[phase].batches
    rows = {
        name: pa.concat_tables([delta[name] for delta in feed[end - WINDOW : end]]) for name in scenario.names
    }
    pairs = {
        frozenset(pair): max(_LEAST_SHARE, _matching_share(scenario, rows, *pair))
        for pair in combinations(scenario.names, 2)
    }
    shape = scenario.phases[phase].shape_at(scenario.phases[phase].batches - 1)
    return estimate_join_graph(ask(scenario, plan="mjoin").query, shape.rates, pairs, costs)


def true_lags(scenario: Scenario, feed: Sequence[Delta], phase: int) -> LagHistograms:
    """The lags of the exact join's results at the end of a phase."""
    end = scenario.start_of(phase) + scenario.phases[phase].batches
    query = ask(scenario, plan="mjoin", adapt=False).start()
    tables = [query.process(rows) for rows in feed[max(0, end - SETTLING) : end]]
    results = pa.concat_tables(tables[WINDOW:])
    times = {name: results[name].cast(pa.int64()).to_numpy() / SECOND for name in scenario.names}
    first, *others = scenario.names

    def count(name: str) -> LagHistogram:
        counts, _ = np.histogram(times[name] - times[first], _BUCKETS, (-WINDOW, WINDOW))
        return LagHistogram(-WINDOW, WINDOW, tuple(map(float, counts)))

    return LagHistograms(first, {name: count(name) for name in others})


def _matching_share(scenario: Scenario, rows: Delta, left: str, right: str) -> float:
    """The share of the pairs of two streams that match, counted pair by pair."""
    ours, theirs = (rows[name]["k"].to_numpy() for name in (left, right))
    if not len(ours) or not len(theirs):
        return 0.0
    is_match = ours[:, None] == theirs[None, :]
    neighbours = scenario.names.index(right) - scenario.names.index(left) == 1
    if scenario.lagged and neighbours:
        near, far = (rows[name]["x"].to_numpy() for name in (left, right))
        is_match &= np.abs(near[:, None] - far[None, :]) <= NEAR
    return float(is_match.mean())
