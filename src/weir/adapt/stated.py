"""What a user says about the streams: how many rows a second come, and how selective conditions are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weir.adapt.measure import Seen
from weir.errors import QueryError
from weir.query import Query
from weir.stats import Streams


def stated(query: Query, rates: Any, selectivities: Any) -> Seen | None:
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
    return Seen(named, _shares(query, selectivities))


def _rate(name: str, rate: Any) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate) or rate <= 0:
        raise QueryError(f"the rate of stream '{name}' must be above zero rows a second; got {rate!r}")
    return float(rate)


def _shares(query: Query, selectivities: Any) -> dict[Streams, float]:
    if selectivities is not None and not isinstance(selectivities, Mapping):
        raise QueryError(f"selectivities= maps pairs of streams to shares, like {_EXAMPLE}")
    shares: dict[Streams, float] = {}
    for pair, share in (selectivities or {}).items():
        if isinstance(pair, str) or len(pair) != 2:
            raise QueryError(f"selectivities= maps pairs of streams to shares, like {_EXAMPLE}; got {pair!r}")
        streams = frozenset(query.stream(name).name for name in pair)
        if len(streams) != 2:
            raise QueryError(f"a selectivity is between two different streams; got {pair!r}")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise QueryError(f"the selectivity of {pair!r} must be above 0 and at most 1; got {share!r}")
        shares[streams] = float(share)
    return shares


_EXAMPLE = "{('orders', 'payments'): 0.001}"
