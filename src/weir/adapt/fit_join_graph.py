"""Fit the join graph of a running query to its statistics: measured rates, selectivities and row sizes.

The selectivity of a step is the product of the selectivities of the conditions that it is the first to check:
edges, key classes, and corrections for sets of three and more streams. So its logarithm is their sum, and a
weighted least-squares fit of logarithms finds the selectivities that explain the counted matches best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from statistics import median_high

import numpy as np
from numpy.typing import NDArray

from weir.adapt.estimate import estimate_join_graph
from weir.adapt.statistics import Statistics
from weir.query.model import Query
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.unit_costs import UnitCosts

Floats = NDArray[np.float64]
# Keep everything within these bounds, so that estimates are finite whatever was measured.
_RATE_BOUNDS = (1e-6, 1e9)
_SELECTIVITY_BOUNDS = (1e-12, 1.0)
_BATCH_SECONDS_BOUNDS = (1e-3, 1e6)
_LEAST_SELECTIVITY = 1e-290
# Weight of the assumed selectivity, in matches: it decides only where nothing was counted.
_PRIOR_WEIGHT = 0.05
# Matches beyond this number add no weight, as steps then differ for other reasons than chance.
_MOST_WEIGHT = 1000.0
# Kinds of conditions are numbered 0 for edges, 1 for key classes, and
_CORRECTION = 2


def fit_join_graph(query: Query, statistics: Statistics, costs: UnitCosts) -> JoinGraph | None:
    """Return the join graph as measured, assumed where nothing is; None while some rate is unknown."""
    known = statistics.rates
    if any(name not in known for name in query.names):
        return None
    rates = {name: float(np.clip(known[name], *_RATE_BOUNDS)) for name in query.names}
    batch = float(np.clip(statistics.span or 1.0, *_BATCH_SECONDS_BOUNDS))
    assumed = estimate_join_graph(query, rates, costs=costs, batch=batch)
    lag = max(assumed.lag, min(statistics.watermark_delay or 0.0, _BATCH_SECONDS_BOUNDS[1]))
    graph = _fit_selectivities(assumed, statistics)
    return replace(graph, row_bytes=_fit_row_bytes(assumed, statistics), lag=lag)


def _fit_selectivities(assumed: JoinGraph, statistics: Statistics) -> JoinGraph:
    edges = {edge: assumed.selectivities[edge] for edge in assumed.edges}
    kinds = (edges, assumed.classes, assumed.corrections())
    conditions = [(streams, kind) for kind, shares in enumerate(kinds) for streams in shares]
    prior = np.log(np.clip([kinds[kind][streams] for streams, kind in conditions], *_SELECTIVITY_BOUNDS))
    checks, measured, weights = _collect_evidence(statistics, conditions, prior)
    normal = checks.T @ (weights[:, None] * checks) + _PRIOR_WEIGHT * np.eye(len(conditions))
    shift = np.linalg.solve(normal, checks.T @ (weights * (measured - checks @ prior)))
    logs = np.clip(prior + shift, *np.log(_SELECTIVITY_BOUNDS))
    fitted: tuple[dict[Streams, float], ...] = ({}, {}, {})
    for (streams, kind), log in zip(conditions, logs, strict=True):
        fitted[kind][streams] = math.exp(log)
    edges, classes, corrections = fitted
    narrowing = {pair: edges[pair] for pair in assumed.narrowing}
    graph = replace(assumed, selectivities=edges, classes=classes, narrowing=narrowing)
    # The selectivity of three and more streams is that of their parts times corrections.
    wide = {}
    for streams in corrections:
        correction = math.prod(share for part, share in corrections.items() if part <= streams)
        wide[streams] = max(_LEAST_SELECTIVITY, graph.selectivity(streams) * correction)
    return replace(graph, selectivities={**edges, **wide})


def _collect_evidence(
    statistics: Statistics, conditions: list[tuple[Streams, int]], prior: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return a row per step: which conditions it checks, the logarithm of its selectivity, and its weight."""
    # The graph's selectivities cover both directions of a step together.
    sums: dict[frozenset[Streams], tuple[float, float]] = {}
    for (bound, partner), average in statistics.matches.items():
        sides = frozenset({frozenset(bound), frozenset(partner)})
        matches, pairs = sums.get(sides, (0.0, 0.0))
        sums[sides] = matches + average.total, pairs + average.exposure
    checks, measured, weights = [], [], []
    for sides, (matches, pairs) in sums.items():
        left, right = sides
        row = np.array([_is_checked(*condition, left, right) for condition in conditions], np.float64)
        if not matches and pairs * math.exp(row @ prior) > 1:
            # No match although one was expected: the selectivity is at most that of a single match.
            matches = 1.0
        if row.any() and matches > 0 and pairs > 0:
            checks.append(row)
            measured.append(math.log(np.clip(matches / pairs, *_SELECTIVITY_BOUNDS)))
            weights.append(min(matches, _MOST_WEIGHT))
    return np.array(checks).reshape(-1, len(conditions)), np.array(measured), np.array(weights)


def _is_checked(streams: Streams, kind: int, left: Streams, right: Streams) -> bool:
    """True if joining two sets of streams checks a condition; for a correction, if they then cover it."""
    is_covered = kind != _CORRECTION or streams <= left | right
    return bool(streams & left and streams & right) and is_covered


def _fit_row_bytes(assumed: JoinGraph, statistics: Statistics) -> Callable[[Streams], float]:
    """Return measured bytes per row; of states that do not exist yet, assumed bytes times a typical error."""
    assumed_bytes = assumed.row_bytes
    assert assumed_bytes is not None
    known = {frozenset(s): average.value for s, average in statistics.row_bytes.items() if average.value}
    errors = [size / assumed_bytes(s) for s, size in known.items() if assumed_bytes(s) > 0]
    typical_error = median_high(errors) if errors else 1.0

    @cache
    def row_bytes(streams: Streams) -> float:
        return known.get(streams) or typical_error * assumed_bytes(streams)

    return row_bytes
