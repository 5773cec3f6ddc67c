from __future__ import annotations

from typing import Any

import pytest
from tests.adapt.tables import table

import weir


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rates": 10**400}, "must be above zero rows a second"),
        ({"rates": 1, "selectivities": {5: 0.5}}, "maps pairs of streams"),
        ({"rates": 0}, "must be above zero rows a second; got 0"),
        ({"rates": {"a": 1}}, "no rate is given for stream 'b'"),
        ({"rates": {"a": 1, "b": 1, "x": 1}}, "'x'"),
        ({"rates": "many"}, "got 'many'"),
        ({"selectivities": {("a", "b"): 0.5}}, "give rates= too"),
        ({"rates": 1, "selectivities": {("a", "b"): 0}}, "above 0 and at most 1; got 0"),
        ({"rates": 1, "selectivities": {("a", "a"): 0.5}}, "two different streams"),
        ({"rates": 1, "selectivities": {"ab": 0.5}}, "maps pairs of streams"),
        ({"rates": 1, "selectivities": {("a", "z"): 0.5}}, "'z'"),
    ],
)
def test_wrong_statistics_are_refused(given: dict[str, Any], message: str) -> None:
    schemas = {name: table(1, 1, 0).schema for name in "ab"}
    with pytest.raises(weir.QueryError, match=message):
        weir.join(streams=schemas, on="a.k = b.k", within="1 second", **given)
