"""`explain` says what it said: the query, the plan and its figures, and how each hop finds its partners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from weir.query.windows import TimeWindow

from . import names, normal
from .record import check
from .runs import AGES, BAND, DEEP, KEY, MJOIN, PROBES, SCHEMA, SECOND, TWO_KEYS, windowed

RATES = {"rates": {"a": 300.0, "b": 200.0, "c": 10.0}}
HEAVY = {"rates": 3000.0, "selectivities": {("a", "b"): 0.01, ("b", "c"): 0.002}}
VECTORS = SCHEMA.append(pa.field("x", pa.list_(pa.float32(), 3)))
ASKED: dict[str, dict[str, Any]] = {
    "plain": {**KEY, "late": "3 seconds", "fresh": {"a": "9 seconds"}},
    "bjtree": {**KEY, **RATES, "plan": "bjtree"},
    "no limits": {**KEY, **RATES},
    "memory": {**KEY, **RATES, "budget": weir.Budget(memory="1m")},
    "a tree for less memory": {**TWO_KEYS, **HEAVY, "budget": weir.Budget(memory="64m")},
    "too little CPU": {**BAND, **HEAVY, "budget": weir.Budget(cpu=0.2)},
    "too little CPU, jaqpot": {**BAND, **HEAVY, "budget": weir.Budget(cpu=0.2), "shed": "jaqpot"},
    "too little CPU, harvest": {**BAND, **HEAVY, "budget": weir.Budget(cpu=0.2), "shed": "harvest"},
    "too little CPU, random-drop": {**BAND, **HEAVY, "budget": weir.Budget(cpu=0.2), "shed": "random-drop"},
    "every condition": {
        "on": "abs(a.v - b.v) <= 2 AND cosine(b.x, c.x) >= 0.9 AND a.v > 3 AND odd(a.k, c.k) "
        "AND a.k + b.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS",
        "within": {"a": "8 seconds", "b": weir.rows(20), "c": "9 seconds"},
        "functions": {"odd": weir.udf(lambda one, other: one)},
        "select": "a.k",
    },
    "windows of joins": {**KEY, **RATES, "plan": windowed(TimeWindow(5 * SECOND))},
    "ages by hand": {**KEY, "plan": MJOIN, "allowance": AGES},
    "probes by hand": {**KEY, "plan": MJOIN, "allowance": PROBES},
}


def test_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    names.typical_costs(monkeypatch)
    found = []
    for name, asked in ASKED.items():
        join = weir.join(**dict.fromkeys("abc", VECTORS), **{"within": "8 seconds", **asked})
        said = normal.explanation(join.explanation())
        found.append({"query": name, **said, "hops": normal.physical(join.query, join.planned.plan)})
    check("explain", normal.changes(found))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_explain_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rates = spark.readStream.format("rate").load()
    frame = rates.selectExpr("timestamp AS ts", "value AS k", "value AS v", "value AS id")
    found = {}
    for name, asked, more in (
        ("by key", KEY, {}),
        ("one partition", BAND, {"partitions": 1}),
        ("shared", BAND, {"spread": "share"}),
        ("by time", BAND, {"spread": "psp"}),
        ("by segments", {**TWO_KEYS, "plan": DEEP}, {"spread": "atr"}),
    ):
        given = {"within": "8 seconds", "partitions": 2, **asked, **more}
        join = weir.join(**dict.fromkeys("abc", frame), **given)
        said = normal.explanation(join.explanation())
        found[name] = {section: lines for section, lines in said.items() if section in ("plan", "columns")}
    check("explain-spark", found)
