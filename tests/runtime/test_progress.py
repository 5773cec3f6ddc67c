"""Progress has the same keys and types on both engines, and is JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weir
from weir.kernel import plan_migration
from weir.plan.tree import hops
from weir.plan.tree import join as tree
from weir.runtime.batch_events import listen
from weir.testing import ListSource, ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MJOIN, PAIR_FIRST = tree("a", "b", "c"), tree(tree("a", "b"), "c")
BATCHES, CHANGES_IN = 6, 2


def allow(plan: Any) -> weir.Allowance:
    """Shed in every way at once."""
    first, last = hops(plan)[0], hops(plan)[-1]
    ages = {last: weir.Ages(2_000_000, frozenset({0, 1}))}
    return weir.Allowance({first: 0.5}, "hash", sample=0.3, ages=ages, drop={"a": 0.1})


def arrivals() -> ListSource:
    rng, clock = np.random.default_rng(5), ManualClock("2024-01-02 12:00+00:00")

    def rows(behind: int) -> list[dict[str, Any]]:
        delays = behind + rng.integers(0, 5000, 40)
        return [{"ts": clock.ago(f"{ms} ms"), "k": int(rng.integers(0, 12))} for ms in delays]

    batches = []
    for _ in range(BATCHES):
        clock.advance("5 seconds")
        batches.append({"a": rows(0), "b": rows(0), "c": rows(6000)})  # what meets c is stale by then
    # One late row, and one without a time.
    batches[-1]["b"] += [{"ts": clock.ago("1 minute"), "k": 1}, {"ts": None, "k": 1}]
    return ListSource(*batches)


def asked(streams: Any, **more: Any) -> Any:
    return weir.join(
        **streams,
        on="a.k = b.k AND b.k = c.k",
        within="10 seconds",
        fresh="10 seconds",
        late="6 seconds",
        plan=MJOIN,
        allowance=allow(MJOIN),
        driver_order="least-work",  # which learns, so that there are statistics
        **more,
    )


@pytest.fixture(scope="module")
def local() -> Iterator[list[dict[str, Any]]]:
    source = arrivals()
    with pytest.MonkeyPatch.context() as patch:
        migrate_slowly(patch)
        query = asked(source.schemas).start()
        for number, batch in enumerate(source.batches):
            if number == CHANGES_IN:
                query.replan(PAIR_FIRST, allow(PAIR_FIRST), "the test wants it")
            query.process(batch)
    yield [progress["weir"] for progress in query.recentProgress]


def migrate_slowly(patch: pytest.MonkeyPatch) -> None:
    """Let a change of plan take several batches."""
    patch.setattr(plan_migration, "MIN_MIGRATION_STEPS", 2000)
    patch.setattr(plan_migration, "MIGRATION_SHARE", 0.0)


def run_on_spark(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    from weir.spark.testing import stream_files

    source, started, queries = arrivals(), threading.Event(), list[Any]()

    def change(phase: str, batch: int) -> None:
        if (phase, batch) == ("decide", CHANGES_IN):
            assert started.wait(60)
            queries[0].replan(PAIR_FIRST, allow(PAIR_FIRST), "the test wants it")

    stop = listen(change)
    try:
        join = asked(stream_files(spark, source.schemas, source.batches, folder), partitions=1)
        writer = join.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        queries.append(writer.trigger(availableNow=True).start(str(folder / "out")))
        started.set()
        assert queries[0].awaitTermination(120)
    finally:
        stop()
    return [progress["weir"] for progress in queries[0].recentProgress]


def shape(value: Any) -> Any:
    """The keys of a value and the types of its leaves."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path of every number, text and None, and its type."""
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path, type(value).__name__
    else:
        for key, item in items:
            yield from leaves(item, f"{path}/{key}")


def check_json(progress: list[dict[str, Any]]) -> None:
    assert json.loads(json.dumps(progress, allow_nan=False)) == progress
    types = {leaf for section in progress for leaf in leaves(section)}
    whole, fractional = ({path for path, kind in types if kind == wanted} for wanted in ("int", "float"))
    assert not whole & fractional, "a number is whole in one batch and a fraction in the next"


def test_the_run_shows_all_that_progress_can_tell(local: list[dict[str, Any]]) -> None:
    assert all(section["numRowsShed"] for section in local) and local[0]["lags"]
    assert any(section["numRowsStale"] for section in local) and local[-1]["oldestAge"]
    shares = [share for section in local for share in section["decision"]["building"].values()]
    assert any(0 < share < 1 for share in shares)
    assert [local[0]["plan"], local[-1]["plan"]] == [str(MJOIN), str(PAIR_FIRST)]
    assert local[-1]["statistics"]["selectivities"] and local[-1]["placement"]
    assert local[-1]["streams"]["b"]["numRowsDroppedByWatermark"] == 1
    assert local[-1]["streams"]["b"]["numRowsNullTime"] == 1


def test_progress_is_json(local: list[dict[str, Any]]) -> None:
    check_json(local)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_both_engines_have_the_same_progress(
    local: list[dict[str, Any]], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate_slowly(monkeypatch)
    on_spark = run_on_spark(spark, tmp_path)
    check_json(on_spark)
    assert len(on_spark) == len(local)
    for ours, theirs in zip(local, on_spark, strict=True):
        for holder in (ours["watermarkHeldBy"], theirs["watermarkHeldBy"]):
            holder.pop("since")  # in one process no wall clock is read
        assert shape(theirs) == shape(ours)
