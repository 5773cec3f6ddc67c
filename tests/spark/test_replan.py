"""A running query changes its plan: results stay exact, through restarts and repeated batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import weir
from weir.errors import QueryError
from weir.kernel import plan_migration as migrate
from weir.plan.tree import join as tree
from weir.runtime.batch_events import listen
from weir.spark.join import SparkJoin
from weir.spark.query import SparkQuery

from . import spreads
from .spreads import asked, batches_of, by_duckdb, case
from .streams import finish, read_bag, read_state, write_feed

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PLANS = (
    tree(tree("a", "b"), tree("c", "d")),
    tree(tree(tree("b", "c"), "a"), "d"),
    tree("d", "c", "b", "a"),
    tree(tree("a", "b", "c"), "d"),
)
BATCHES, EVERY, DIES_IN = 7, 2, 3


@pytest.fixture
def little_effort() -> Iterator[None]:
    """So few steps in one batch that making a state takes several."""
    known = migrate.MIN_MIGRATION_STEPS, migrate.MIGRATION_SHARE
    migrate.MIN_MIGRATION_STEPS, migrate.MIGRATION_SHARE = 6000, 0.0
    yield
    migrate.MIN_MIGRATION_STEPS, migrate.MIGRATION_SHARE = known


def changed(join: SparkJoin, folder: Path, format: str, dies_in: int | None = None) -> SparkQuery:
    """A query that is asked to go over to another plan before every second batch."""
    started, queries = threading.Event(), list[SparkQuery]()

    def change(reached: str, batch: int) -> None:
        if reached == "decide" and batch and batch % EVERY == 0:
            assert started.wait(60)
            queries[0].replan(PLANS[batch // EVERY % len(PLANS)], reason=f"batch {batch} wants it")
        if (reached, batch) == ("sync_batch", dies_in):
            raise ConnectionError("the machine is gone")

    stop = listen(change)
    try:
        writer = join.writeStream.format(format).option("path", str(folder / format))
        writer = writer.option("checkpointLocation", str(folder / "ckpt"))
        queries.append(writer.trigger(availableNow=True).start())
        started.set()
        return finish(queries[0])
    finally:
        stop()


@pytest.mark.usefixtures("little_effort")
def test_results_are_exact_while_plans_change(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spreads.PER_BATCH, 4, 2 * spreads.PER_BATCH[4])
    found = case(("equality",), 4, BATCHES, seed=3)
    feed = write_feed(tmp_path / "in", batches_of(found))
    wanted, _ = by_duckdb(found)

    def join() -> SparkJoin:
        return weir.join(**feed.frames(spark), **asked(found), partitions=2, plan=tree("a", "b", "c", "d"))

    with pytest.raises(Exception, match="the machine is gone"):
        changed(join(), tmp_path, "parquet", DIES_IN)
    before = read_state(tmp_path / "ckpt", "manifest", DIES_IN - 1)["manifest"]
    assert any(part["migration"]["building"] for _, part in before["parts"]), "nothing was half-way"
    query = changed(join(), tmp_path, "json")  # whose results Spark writes, in a job of their own
    progress = {one["batchId"]: one["weir"] for one in query.recentProgress}
    assert progress[DIES_IN]["decision"]["reason"] == f"batch {DIES_IN - 1} wants it"
    assert read_bag(tmp_path / "parquet") + read_bag(tmp_path / "json", "json") == wanted
    shares = [share for one in progress.values() for share in one["decision"]["building"].values()]
    assert any(0 < share < 1 for share in shares)
    assert {str(PLANS[1]), str(PLANS[2])} <= {one["plan"] for one in progress.values()}


def test_shared_rows_cannot_change_to_a_tree(spark: SparkSession, tmp_path: Path) -> None:
    found = case(("band",), 3, 1, seed=4)
    feed = write_feed(tmp_path / "in", batches_of(found))
    join = weir.join(**feed.frames(spark), **asked(found), partitions=2, spread="share")
    query = join.writeStream.format("count").start()
    try:
        with pytest.raises(QueryError, match=r"spread='share' cannot change to the tree \(\(a b\) c\)"):
            query.replan(tree(tree("a", "b"), "c"))
        query.replan(tree("a", "b", "c", orders=[[2, 1], [2, 0], [1, 0]]))
    finally:
        query.stop()
    with pytest.raises(QueryError, match="the query has ended"):
        query.replan(tree("a", "b", "c"))
