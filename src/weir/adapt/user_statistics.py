"""Check the rates and selectivities that a user passes (`rates=`, `selectivities=`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from weir.adapt.table_statistics import TableStatistics
from weir.errors import QueryError
from weir.query.model import Query
from weir.stats.join_graph import Streams

# Rows per second; outside of these, products over twenty windows would overflow or become zero.
_LEAST_RATE, _MOST_RATE = 1e-9, 1e12
_PAIRS = "selectivities= maps pairs of streams to shares, like {('orders', 'payments'): 0.001}"


def parse_user_statistics(query: Query, rates: Any, selectivities: Any) -> TableStatistics | None:
    """Return the user's statistics; None if no rates are given."""
    if rates is None:
        if selectivities is not None:
            raise QueryError("selectivities= without rates= cannot be used; give rates= too")
        return None
    given = rates if isinstance(rates, Mapping) else dict.fromkeys(query.names, rates)
    parsed = {}
    for name, rate in given.items():
        parsed[query.stream(name).name] = number = _parse_number(rate)
        if not _LEAST_RATE <= number <= _MOST_RATE:
            raise QueryError(f"the rate of stream '{name}' must be above zero rows a second; got {rate!r}")
    for name in query.names:
        if name not in parsed:
            raise QueryError(f"no rate is given for stream '{name}'; add it to rates=")
    if selectivities is not None and not isinstance(selectivities, Mapping):
        raise QueryError(f"{_PAIRS}; got {selectivities!r}")
    shares = {}
    for pair, share in (selectivities or {}).items():
        shares[_parse_pair(query, pair)] = number = _parse_number(share)
        if not 0 < number <= 1:
            raise QueryError(f"the selectivity of {pair!r} must be above 0 and at most 1; got {share!r}")
    return TableStatistics(parsed, shares)


def _parse_pair(query: Query, pair: Any) -> Streams:
    is_pair = isinstance(pair, tuple | list | frozenset) and len(pair) == 2
    if not is_pair or not all(isinstance(name, str) for name in pair):
        raise QueryError(f"{_PAIRS}; got {pair!r}")
    streams = frozenset(query.stream(name).name for name in pair)
    if len(streams) != 2:
        raise QueryError(f"a selectivity is between two different streams; got {pair!r}")
    return streams


def _parse_number(given: Any) -> float:
    """Return a number, or NaN, which lies between no bounds, for anything else."""
    if isinstance(given, bool) or not isinstance(given, Real):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.nan
