"""A given allowance holds for every batch, and a repeated batch sheds the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import weir
from weir.plan.tree import hops, join
from weir.spark.checkpoint import Checkpoint
from weir.spark.filesystem import open_folder

from .streams import PAIR, add_batch, bag, generate, read_bag, repeat_last_batch, run, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_a_repeated_batch_sheds_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    plan = join("a", "b")
    ages = {hops(plan)[1]: weir.Ages(3_000_000, frozenset({0, 2}))}
    allowance = weir.Allowance(
        dict(zip(hops(plan), (0.3, 0.6), strict=True)), "hash", 0.2, ages, drop={"a": 0.1}
    )
    batches = generate(2, 3, 40, 5, seed=31)
    asked = {**PAIR, "plan": plan, "partitions": 1}
    feed = write_feed(tmp_path / "in", {name: found[:2] for name, found in batches.items()})

    # The kernel is the same in one process, so what it should find and skip is known.
    local = weir.join(**feed.tables(), **PAIR, plan=plan, allowance=allowance).start()
    wanted = [bag(local.process({n: t[i] for n, t in feed.batches.items()})) for i in range(2)]
    shed = [one["weir"]["numRowsShed"] for one in local.recentProgress]
    sampled = [_sampled(one["weir"]) for one in local.recentProgress]

    query = run(
        weir.join(**feed.frames(spark), **asked, allowance=allowance), tmp_path / "ckpt", tmp_path / "out"
    )
    told = [one["weir"] for one in query.recentProgress]
    assert [one["numRowsShed"] for one in told] == shed and all(shed)
    assert [_sampled(one) for one in told] == sampled and all(found[1] for found in sampled)
    dropped = [
        shed - sum(h["skipped"] for h in one["hops"].values()) for one, shed in zip(told, shed, strict=True)
    ]
    assert all(0 < rows < 40 for rows in dropped)
    assert [one["lags"] for one in told] == [one["weir"]["lags"] for one in local.recentProgress]
    assert sum(h["narrowed"] for one in told for h in one["hops"].values()) > 0
    recall = [one["weir"]["estimatedRecall"] for one in local.recentProgress]
    assert [one["estimatedRecall"] for one in told] == pytest.approx(recall) and 0 < recall[1] < 1
    assert told[1]["decision"] == {
        "plan": "(a b)",
        "orders": {"a in (a b)": ["b"], "b in (a b)": ["a"]},
        "driverOrder": "auto",
        "allowance": {
            "probes": {"a ⋉ b in (a b)": 0.3, "b ⋉ a in (a b)": 0.6},
            "choose": "hash",
            "sample": 0.2,
            "ages": {"b ⋉ a in (a b)": {"every": "3 seconds", "kept": [0, 2]}},
            "drop": {"a": 0.1},
        },
        "workCap": None,
        "reason": "as requested",
        "building": {},
    }
    assert told[1]["decision"] == local.recentProgress[1]["weir"]["decision"]
    assert read_bag(tmp_path / "out") == wanted[0] + wanted[1]
    checkpoint = Checkpoint(open_folder(spark, f"{tmp_path / 'ckpt'}/weir"))
    known = checkpoint.decision(1)
    assert known is not None and known[0].allowance == allowance

    # The repeated batch obeys what was decided for it; the next one what is asked for now.
    repeat_last_batch(tmp_path / "ckpt")
    feed = add_batch(feed, {name: found[2] for name, found in batches.items()})
    query = run(weir.join(**feed.frames(spark), **asked), tmp_path / "ckpt", tmp_path / "out")
    assert [one["weir"]["numRowsShed"] for one in query.recentProgress] == [shed[1], 0]
    local.allow(None)
    wanted.append(bag(local.process({name: found[2] for name, found in batches.items()})))
    # What was known of the recall is kept in the checkpoint.
    recall = [one["weir"]["estimatedRecall"] for one in local.recentProgress]
    assert [one["weir"]["estimatedRecall"] for one in query.recentProgress] == pytest.approx(recall[1:])
    assert recall[1] < recall[2] < 1
    assert all(wanted) and read_bag(tmp_path / "out") == sum(wanted[1:], wanted[0])


def _sampled(section: dict[str, Any]) -> tuple[int, int]:
    hops = section["hops"].values()
    return sum(hop["sampled"] for hop in hops), sum(hop["sampledMatches"] for hop in hops)
