"""Joins whose edges have different keys, by hash: streams stored by each, partials sent by the next one."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.plan import Join, Leaf, hops
from weir.plan import join as tree
from weir.spark.errors import ChangedQueryError

from .streams import (
    LATE,
    SCHEMA,
    SECOND,
    START,
    Feed,
    add_batch,
    bag,
    generate,
    read_bag,
    repeat_last_batch,
    run,
    write_feed,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def asked(streams: int, on: str = "a.k = b.k AND b.v = c.v", within: str = "8 seconds") -> dict[str, Any]:
    names = "abcd"[:streams]
    return {
        "on": on,
        "within": within,
        "late": LATE,
        "select": ", ".join(f"{x}.v AS {x}v, {x}.k AS {x}k, {x}.id AS {x}id" for x in names),
    }


def in_duckdb(feed: Feed, given: dict[str, Any], seconds: int) -> Counter[tuple[Any, ...]]:
    """The same by a database: windows of one length as the largest time less the smallest."""
    database = duckdb.connect()
    for name, table in feed.tables().items():
        database.register(name, table)
    times = ", ".join(f"epoch_us({name}.ts)" for name in feed.batches)
    apart = f"greatest({times}) - least({times}) < {seconds * SECOND}"
    sql = f"SELECT {given['select']} FROM {', '.join(feed.batches)} WHERE {given['on']} AND {apart}"
    return bag(database.sql(sql).to_arrow_table())


def test_different_keys_over_several_partitions(spark: SparkSession, tmp_path: Path) -> None:
    """Three streams into Parquet; rows behind the watermark and without a time are counted once."""
    batches = generate(3, 3, 40, 9, seed=3)
    odd = {"k": [1, None, 2], "v": [1, 2, None], "id": [900, 901, 902]}
    times = [START - 60 * SECOND, None, START + 21 * SECOND]
    batches["b"][2] = pa.concat_tables([batches["b"][2], pa.table({"ts": times, **odd}, SCHEMA)])
    feed = write_feed(tmp_path / "in", batches)
    given = {**asked(3), "driver_order": ["b", "a", "c"]}
    local = weir.join(**feed.tables(), **given).start()
    wanted = [bag(local.process({n: t[i] for n, t in feed.batches.items()})) for i in range(3)]
    join = weir.join(**feed.frames(spark), **given, partitions=2, spread="hash")
    assert "over 2 partitions per key, 'a', 'b' by k; 'b', 'c' by v" in join.explanation()
    query = run(join, tmp_path / "ckpt", tmp_path / "out")
    assert read_bag(tmp_path / "out") == wanted[0] + wanted[1] + wanted[2]
    assert sum(map(len, wanted)) > 100
    told = [one["weir"] for one in query.recentProgress]
    known = [one["weir"] for one in local.recentProgress]
    assert [one["numOutputRows"] for one in told] == [sum(found.values()) for found in wanted]
    for one, other in zip(told, known, strict=True):
        assert one["streams"] == other["streams"]
        for hop, found in other["hops"].items():
            assert one["hops"][hop]["matches"] == found["matches"]
    assert told[2]["streams"]["b"]["numRowsDroppedByWatermark"] == 1
    assert told[2]["streams"]["b"]["numRowsNullTime"] == 1
    # The stream with two keys is stored twice, and the bytes are those of both.
    state = told[0]["state"]
    assert [state[name]["numRowsCopied"] for name in "abc"] == [0, state["b"]["numRowsTotal"] // 2, 0]
    alone = known[0]["state"]["b"]["memoryUsedBytes"]
    assert 1.9 * alone <= state["b"]["memoryUsedBytes"] <= 2.5 * alone


def test_it_is_what_a_database_finds(spark: SparkSession, tmp_path: Path) -> None:
    """Four streams into files that Spark writes; one hop has no key and goes everywhere."""
    feed = write_feed(tmp_path / "in", generate(4, 2, 30, 9, seed=4))
    given = asked(4, "a.k = b.k AND b.v = c.v AND abs(a.id - d.id) <= 2 AND c.k = d.k", "4 seconds")
    plan = Join(tuple(map(Leaf, "abcd")), ((1, 2, 3), (0, 2, 3), (1, 0, 3), (0, 1, 2)))
    join = weir.join(**feed.frames(spark), **given, partitions=3, spread="hash", plan=plan)
    homes = join.routing.homes
    assert homes is not None and homes.moves == 2 and [hop.driver for hop in homes.blind] == ["d"]
    run(join, tmp_path / "ckpt", tmp_path / "out", "json")
    wanted = in_duckdb(feed, given, 4)
    assert sum(wanted.values()) > 20
    assert read_bag(tmp_path / "out", "json") == wanted


KEYS: dict[str, list[Any]] = {
    "whole": [1, 2, -(2**31), None],
    "real": [0.0, -0.0, float("nan"), 1.5, None],
    "text": ["", "short", "longer than seven bytes", "the same and more of it", None],
    "money": [Decimal("1.10"), Decimal("-7.00"), Decimal("99999999.99"), None],
    "at": [datetime(2020, 1, 1, microsecond=1), datetime(1960, 1, 1, microsecond=500_000), None],
}
KINDS = {
    "whole": pa.int32(),
    "real": pa.float64(),
    "text": pa.string(),
    "money": pa.decimal128(10, 2),
    "at": pa.timestamp("us", "UTC"),
}


def typed(streams: str, rows: int, seed: int) -> dict[str, list[pa.Table]]:
    """Rows with a key of every type, drawn from the few values above."""
    rng = np.random.default_rng(seed)

    def table(stream: str, number: int) -> pa.Table:
        times = START + number * 10 * SECOND + rng.integers(0, 10 * SECOND, rows)
        drawn = {
            name: pa.array([values[i] for i in rng.integers(0, len(values), rows)], KINDS[name])
            for name, values in KEYS.items()
        }
        if stream == "b":  # a wider type on one side, a narrower on the other
            drawn["whole"] = drawn["whole"].cast(pa.int64())
            drawn["real"] = drawn["real"].cast(pa.float32())
        ids = pa.array(number * rows + np.arange(rows))
        return pa.table({"ts": pa.array(times, SCHEMA.field("ts").type), **drawn, "id": ids})

    return {stream: [table(stream, number) for number in range(2)] for stream in streams}


def test_keys_of_all_types_meet(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", typed("abcde", 24, seed=5))
    on = "a.whole = b.whole AND b.real = c.real AND c.text <=> d.text AND d.at = e.at AND d.money = e.money"
    select = ", ".join(f"{name}.id AS {name}" for name in "abcde")
    given = {"on": on, "within": "6 seconds", "late": LATE, "select": select}
    join = weir.join(**feed.frames(spark), **given, partitions=2, spread="hash", plan="mjoin")
    assert "'d', 'e' by at and money" in join.explanation()
    run(join, tmp_path / "ckpt", tmp_path / "out")
    wanted = in_duckdb(feed, {**given, "on": on.replace("<=>", "IS NOT DISTINCT FROM")}, 6)
    assert sum(wanted.values()) > 100
    assert read_bag(tmp_path / "out") == wanted


def test_one_key_made_of_expressions_needs_no_move(spark: SparkSession, tmp_path: Path) -> None:
    feed = write_feed(tmp_path / "in", generate(2, 1, 40, 9, seed=6))
    given = asked(2, "a.k + 1 = b.k")
    join = weir.join(**feed.frames(spark), **given, partitions=2, spread="hash")
    assert join.routing.homes is not None and join.routing.homes.moves == 0
    query = run(join, tmp_path / "ckpt", tmp_path / "out")
    wanted = in_duckdb(feed, given, 8)
    assert read_bag(tmp_path / "out") == wanted and query.lastProgress is not None
    assert query.lastProgress["weir"]["numOutputRows"] == sum(wanted.values()) > 20


def test_an_allowance_is_obeyed_and_a_repeat_gives_the_same(spark: SparkSession, tmp_path: Path) -> None:
    batches = generate(3, 3, 40, 9, seed=8)
    feed = write_feed(tmp_path / "in", {name: found[:2] for name, found in batches.items()})
    given = asked(3)
    plan = Join(tuple(map(Leaf, "abc")), ((1, 2), (0, 2), (1, 0)))
    # A dropped row is dropped wherever it is stored; who goes on is told by what the partial holds.
    second = [hop for hop in hops(plan) if (hop.driver, hop.partner) in {("a", "c"), ("b", "c")}]
    allowance = weir.Allowance(
        dict.fromkeys(second, 0.5),
        "hash",
        ages={hops(plan)[0]: weir.Ages(2_000_000, frozenset({0, 2}))},
        sample=0.3,
        drop={"b": 0.2},
    )
    order = {"plan": plan, "driver_order": ["c", "a", "b"]}
    more: dict[str, Any] = {"partitions": 2, "spread": "hash", **order}
    checkpoint, out = tmp_path / "ckpt", tmp_path / "out"
    query = run(weir.join(**feed.frames(spark), **given, **more, allowance=allowance), checkpoint, out)
    local = weir.join(**feed.tables(), **given, **order, allowance=allowance).start()
    wanted = [bag(local.process({name: found[i] for name, found in feed.batches.items()})) for i in range(2)]
    assert read_bag(out) == wanted[0] + wanted[1] and all(wanted)
    for told, known in zip(query.recentProgress, local.recentProgress, strict=True):
        assert told["weir"]["numRowsShed"] == known["weir"]["numRowsShed"] > 0
        assert told["weir"]["streams"] == known["weir"]["streams"]
        assert told["weir"]["lags"] == known["weir"]["lags"] is not None
        for hop, found in known["weir"]["hops"].items():
            for what in ("probes", "skipped", "matches", "sampled", "sampledMatches"):
                assert told["weir"]["hops"][hop][what] == found[what]
    repeat_last_batch(checkpoint)
    feed = add_batch(feed, {name: found[2] for name, found in batches.items()})
    run(weir.join(**feed.frames(spark), **given, **more), checkpoint, out)
    local.allow(None)
    wanted.append(bag(local.process({name: found[2] for name, found in batches.items()})))
    assert read_bag(out) == sum(wanted[1:], wanted[0])

    job = json.loads(json.loads((checkpoint / "weir" / "job.json").read_text())["body"])
    assert (job["spread"], job["partitions"]) == ("hash per hop", 2)
    assert job["storage"] == {"a": ["k"], "b": ["k", "v"], "c": ["v"]}
    for changed in ({"partitions": 3}, {"spread": "share"}):
        with pytest.raises(ChangedQueryError, match=r"another (partitions|spread)"):
            run(weir.join(**feed.frames(spark), **given, **{**more, **changed}), checkpoint, out)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"on": "a.k = b.k AND b.v < c.v"}, "an equality between stream 'c' and another; use spread='share'"),
        ({"plan": tree(tree("a", "b"), "c")}, "needs an mjoin, not the tree"),
        ({"driver_order": "round-robin"}, "spread='hash' probes across partitions; choose another order"),
    ],
)
def test_what_cannot_be_by_hash(
    given: dict[str, Any], message: str, spark: SparkSession, tmp_path: Path
) -> None:
    feed = write_feed(tmp_path / "in", generate(3, 1, 5, 3, seed=1))
    with pytest.raises(QueryError, match=message):
        weir.join(
            **feed.frames(spark), **{"plan": "mjoin", **asked(3), "partitions": 3, "spread": "hash", **given}
        )
    with pytest.raises(QueryError, match="static DataFrames needs one key that all streams share"):
        weir.join(**feed.statics(spark), **asked(3), partitions=3, spread="hash", plan="mjoin")
