"""The join graph that the statistics of a running query speak for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from weir.adapt.estimate import estimate_join_graph
from weir.adapt.statistics import Statistics
from weir.query.model import Query
from weir.stats.join_graph import JoinGraph, Streams
from weir.stats.unit_costs import UnitCosts

Floats = NDArray[np.float64]
# Bounds within which all that follows are numbers, whatever was measured.
_RATES = (1e-6, 1e9)
_SHARES = (1e-12, 1.0)
_BATCHES = (1e-3, 1e6)
_LEAST = 1e-290
# What a guess weighs beside matches: next to nothing, but it decides where there are none.
_GUESS = 0.05
# More matches than that make a selectivity no surer beside the others: these then differ for other reasons.
_SURE = 1000.0
# The kinds of conditions: edges, classes, and what else sets of three streams and more leave.
_CORRECTION = 2


def fit_join_graph(query: Query, statistics: Statistics, costs: UnitCosts) -> JoinGraph | None:
    """The graph as measured; what cannot be measured is guessed. None while some stream's rate is unknown."""
    known = statistics.rates
    if any(name not in known for name in query.names):
        return None
    rates = {name: _within(known[name], _RATES) for name in query.names}
    guessed = estimate_join_graph(query, rates, costs=costs, batch=_within(statistics.span or 1.0, _BATCHES))
    graph = _fitted(guessed, statistics)
    lag = max(graph.lag, min(statistics.lag or 0.0, _BATCHES[1]))
    return replace(graph, row_bytes=_sizes(guessed, statistics), lag=lag)


def _fitted(guessed: JoinGraph, statistics: Statistics) -> JoinGraph:
    """The graph with the selectivities that explain the matches best, by least squares of logarithms.

    The selectivity of a step is the product of those of the edges, classes and corrections that it is the
    first to ask for, so that its logarithm is their sum. A step weighs as much as matches were counted.
    """
    edges = {edge: guessed.selectivities[edge] for edge in guessed.edges}
    kinds = (edges, guessed.classes, guessed.corrections())
    conditions = [(streams, kind) for kind, shares in enumerate(kinds) for streams in shares]
    guess = np.log([_within(kinds[kind][streams], _SHARES) for streams, kind in conditions])
    asked, told, weights = _evidence(statistics, conditions, guess)
    normal = asked.T @ (weights[:, None] * asked) + _GUESS * np.eye(len(conditions))
    shift = np.linalg.solve(normal, asked.T @ (weights * (told - asked @ guess)))
    least, most = np.log(_SHARES)
    found: tuple[dict[Streams, float], ...] = ({}, {}, {})
    for (streams, kind), log in zip(conditions, np.clip(guess + shift, least, most), strict=True):
        found[kind][streams] = math.exp(log)
    narrowing = {pair: found[0][pair] for pair in guessed.narrowing}
    graph = replace(guessed, selectivities=found[0], classes=found[1], narrowing=narrowing)
    return replace(graph, selectivities={**found[0], **_whole(graph, found[2])})


def _evidence(
    statistics: Statistics, conditions: list[tuple[Streams, int]], guess: Floats
) -> tuple[Floats, Floats, Floats]:
    """Per step: which conditions it asks for, the logarithm of its selectivity, and how sure that is."""
    sums: dict[frozenset[Streams], tuple[float, float]] = {}
    for (bound, partner), seen in statistics.matches.items():
        # The graph's selectivities are those of both directions together.
        between = frozenset({frozenset(bound), frozenset(partner)})
        matches, pairs = sums.get(between, (0.0, 0.0))
        sums[between] = matches + seen.total, pairs + seen.over
    rows, told, weights = [], [], []
    for (one, other), (matches, pairs) in ((tuple(sides), found) for sides, found in sums.items()):
        row = np.array([_is_asked(*condition, one, other) for condition in conditions], np.float64)
        # No match among so many pairs says that it takes more of them, if even that many were expected.
        least = 1.0 if not matches and pairs * math.exp(row @ guess) > 1 else matches
        if row.any() and least > 0 and pairs > 0:
            rows.append(row)
            told.append(math.log(_within(least / pairs, _SHARES)))
            weights.append(min(least, _SURE))
    return np.array(rows).reshape(-1, len(conditions)), np.array(told), np.array(weights)


def _is_asked(streams: Streams, kind: int, one: Streams, other: Streams) -> bool:
    """True if a condition counts when two sets of streams meet; a correction does when they hold it all."""
    return bool(streams & one and streams & other) and (kind != _CORRECTION or streams <= one | other)


def _whole(graph: JoinGraph, corrections: Mapping[Streams, float]) -> dict[Streams, float]:
    """The selectivities of sets of three and more streams, for what each leaves of what its parts do."""
    return {
        streams: max(
            _LEAST,
            graph.selectivity(streams) * math.prod(c for part, c in corrections.items() if part <= streams),
        )
        for streams in corrections
    }


def _sizes(guessed: JoinGraph, statistics: Statistics) -> Callable[[Streams], float]:
    """Bytes of a stored row as measured; of a state that was not there yet, as far off as the others are."""
    size = guessed.row_bytes
    assert size is not None
    known = {frozenset(s): found.value for s, found in statistics.row_bytes.items() if found.value}
    off = [found / size(streams) for streams, found in known.items() if size(streams) > 0]
    usual = sorted(off)[len(off) // 2] if off else 1.0

    @cache
    def measured(streams: Streams) -> float:
        return known.get(streams) or usual * size(streams)

    return measured


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
