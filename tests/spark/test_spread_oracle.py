"""Oracle: every spread with 2 to 5 streams and every kind of predicate, each pair of these at least once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir

from . import spreads
from .driver import functions
from .streams import read_bag, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

BATCHES = 2
# Missing are band of 2, Python of 3 and two keys of 4 streams, which test_spread.py has.
CASES = [
    ("share", 2, "cosine", {}),
    ("share", 3, "equality", {"driver_order": "least-work"}),
    ("share", 4, "band", {}),
    ("share", 5, "python", {}),
    ("psp", 2, "equality", {}),
    ("psp", 3, "cosine", {"driver_order": ["b", "c", "a"]}),
    ("psp", 4, "python", {}),
    ("psp", 5, "band", {}),
    ("atr", 2, "python", {}),
    ("atr", 3, "band", {"plan": "bjtree"}),
    ("atr", 4, "cosine", {}),
    ("atr", 5, "equality", {}),
    ("hash", 4, "equality", {}),
    ("hash", 5, "equality and cosine", {}),
]


@pytest.mark.parametrize(("spread", "streams", "kind", "more"), CASES)
def test_every_spread_equals_duckdb(
    spread: str, streams: int, kind: str, more: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    case = spreads.case(tuple(kind.split(" and ")), streams, BATCHES, seed=streams)
    wanted, admitted = spreads.by_duckdb(case)
    assert sum(wanted.values()) > 20
    assert any(sum(late.values()) for late in admitted.late)
    feed = write_feed(tmp_path / "in", spreads.batches_of(case))
    given = {**spreads.asked(case), **more, "functions": functions()}
    partitions = 3 if streams < 5 else 2
    join = weir.join(**feed.frames(spark), **given, partitions=partitions, spread=spread)
    assert (join.routing.name, join.routing.partitions) == (spread, partitions)
    query = run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == wanted
    assert [one["weir"]["streams"] for one in query.recentProgress] == [
        {
            one.name: {
                "numInputRows": one.batch(batch).num_rows,
                "numRowsDroppedByWatermark": admitted.late[batch][one.name],
                "numRowsNullTime": 0,
                "numRowsAhead": 0,
                "numRowsShed": 0,
            }
            for one in case.inputs
        }
        for batch in range(BATCHES)
    ]
    assert sum(one["weir"]["numOutputRows"] for one in query.recentProgress) == sum(wanted.values())
