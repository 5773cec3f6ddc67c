"""The two small tables that the tests of this folder join."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import weir
from weir.errors import QueryError

TIMES = pa.array([1, 2], pa.timestamp("s"))
A = pa.table({"ts": TIMES, "k": [1, 2], "s": ["x", "y"]})
B = pa.table({"ts": TIMES, "k": [1, 3], "s": ["x", "z"]})
GOOD: dict[str, Any] = {"on": "a.k = b.k", "within": "10 seconds", "select": "a.k"}
STATEMENT = "SELECT a.k FROM a, b WHERE a.k = b.k WINDOW 10 SECONDS"


def joined(**changes: Any) -> list[Any]:
    """The result of the good join with some arguments changed."""
    return weir.join(**{"a": A, "b": B, **GOOD, **changes}).to_arrow().column(0).to_pylist()


def refused(**changes: Any) -> str:
    """What the good join says to a changed argument."""
    with pytest.raises(QueryError) as error:
        joined(**changes)
    return str(error.value)
