"""What a user says about the streams: how many rows a second come, and how selective conditions are."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from weir.adapt.table_statistics import TableStatistics
from weir.errors import QueryError
from weir.query.model import Query
from weir.stats.join_graph import Streams

# Beyond these, products of twenty windows would not be numbers any more.
_LEAST_RATE, _MOST_RATE = 1e-9, 1e12


def parse_user_statistics(query: Query, rates: Any, selectivities: Any) -> TableStatistics | None:
    """The statistics given by hand, checked; None if no rates are given."""
    if rates is None:
        if selectivities is not None:
            raise QueryError("selectivities= alone say nothing about load; give rates= too")
        return None
    given = rates if isinstance(rates, Mapping) else dict.fromkeys(query.names, rates)
    named = {query.stream(name).name: _rate(name, rate) for name, rate in given.items()}
    missing = next((name for name in query.names if name not in named), None)
    if missing is not None:
        raise QueryError(f"no rate is given for stream '{missing}'; add it to rates=")
    return TableStatistics(named, _shares(query, selectivities))


def _rate(name: str, rate: Any) -> float:
    number = _number(rate)
    if number is None or not _LEAST_RATE <= number <= _MOST_RATE:
        raise QueryError(f"the rate of stream '{name}' must be above zero rows a second; got {rate!r}")
    return number


def _number(given: Any) -> float | None:
    if isinstance(given, bool) or not isinstance(given, Real):
        return None
    try:
        return float(given)
    except OverflowError:
        return None


def _shares(query: Query, selectivities: Any) -> dict[Streams, float]:
    if selectivities is not None and not isinstance(selectivities, Mapping):
        raise QueryError(f"selectivities= maps pairs of streams to shares, like {_EXAMPLE}")
    shares: dict[Streams, float] = {}
    for pair, share in (selectivities or {}).items():
        if not isinstance(pair, tuple | list | frozenset) or len(pair) != 2 or not all(map(_is_text, pair)):
            raise QueryError(f"selectivities= maps pairs of streams to shares, like {_EXAMPLE}; got {pair!r}")
        streams = frozenset(query.stream(name).name for name in pair)
        if len(streams) != 2:
            raise QueryError(f"a selectivity is between two different streams; got {pair!r}")
        number = _number(share)
        if number is None or not 0 < number <= 1:
            raise QueryError(f"the selectivity of {pair!r} must be above 0 and at most 1; got {share!r}")
        shares[streams] = number
    return shares


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


_EXAMPLE = "{('orders', 'payments'): 0.001}"
