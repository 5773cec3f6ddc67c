"""The runs that are recorded: small streams that never change, what is asked of them, and both engines."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import weir
from weir.plan import Join, hops
from weir.plan import join as tree
from weir.query.windows import RowWindow, TimeWindow

from . import names, normal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BATCHES, ROWS, EVERY = 4, 40, 5 * SECOND
SCHEMA = pa.schema(
    {"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "v": pa.int64(), "id": pa.int64()},
)
COLUMNS = "ts timestamp, k bigint, v bigint, id bigint"  # the same to Spark
KEY = {"on": "a.k = b.k AND b.k = c.k AND a.v <= c.v", "select": "a.k, a.id AS a, b.id AS b, c.id AS c"}
BAND = {
    "on": "abs(a.v - b.v) <= 1 AND abs(b.v - c.v) <= 1 AND a.k < c.k",
    "select": "a.id AS a, b.id AS b, c.id AS c",
}
TWO_KEYS = {"on": "a.k = b.k AND b.v = c.v", "select": "a.id AS a, b.id AS b, c.id AS c"}
MJOIN, DEEP = tree("a", "b", "c"), tree(tree("a", "b"), "c")
REORDERED = tree("a", "b", "c", orders=[[2, 1], [2, 0], [1, 0]])
_H = {(hop.driver, hop.partner): hop for hop in hops(MJOIN)}
PROBES = weir.Allowance(
    {_H["a", "b"]: 0.5, _H["a", "c"]: 0.8, _H["c", "a"]: 0.3}, "hash", sample=0.3, drop={"b": 0.1}
)
NEWEST = weir.Allowance({_H["b", "a"]: 0.4, _H["c", "a"]: 0.6})
AGES = weir.Allowance(
    {_H["b", "a"]: 0.9},
    sample=0.4,
    ages={
        _H["a", "b"]: weir.Ages(2 * SECOND, frozenset({0, 2})),
        _H["c", "a"]: weir.Ages(SECOND, frozenset({1})),
    },
)


@dataclass(frozen=True)
class Run:
    """What is asked, and before which batch what is done to the running query.

    Where it is `brief`, another run shows such slices one by one.
    """

    asked: Mapping[str, Any]
    spark: Mapping[str, Any] = field(default_factory=dict)
    then: Mapping[int, Callable[[Any], None]] = field(default_factory=dict)
    values: int = 12
    brief: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "within": "8 seconds",
            "late": "2 seconds",
            "basic": "4 seconds",
            "adapt": False,
            **self.asked,
        }


def windowed(inner: Any) -> Join:
    """A tree whose lower join has a window of its own."""
    below = tree("a", "b")
    return tree(Join(below.inputs, below.orders, inner), "c")


def _replan(plan: Join, allowance: weir.Allowance | None, why: str) -> Callable[[Any], None]:
    return lambda query: query.replan(plan, allowance, f"golden: {why}")


# What both engines run, each in a file of its own, so that their differences can be read side by side.
BOTH = {
    "mjoin": Run({**KEY, "plan": MJOIN, "basic": None}, {"partitions": 2, "sink": "noop", "idle": "1 hour"}),
    "fresh": Run({**KEY, "fresh": "8 seconds", "plan": MJOIN}, {"partitions": 2}),
    "row-window": Run(
        {**KEY, "within": {"a": "8 seconds", "b": weir.rows(15), "c": "6 seconds"}}, {"partitions": 1}
    ),
    "ages": Run(
        {**KEY, "plan": MJOIN, "allowance": AGES, "basic": "2 seconds"}, {"partitions": 2}, brief=True
    ),
    "eviction": Run(
        {**KEY, "plan": MJOIN, "adapt": True, "budget": weir.Budget(memory="4k")}, {"partitions": 2}
    ),
    "least-work-tree": Run(
        {**KEY, "plan": DEEP, "driver_order": "least-work"},
        {"partitions": 2, "spread": "hash", "sink": "call"},
    ),
    "replan": Run(
        {**KEY, "plan": MJOIN, "allowance": NEWEST},
        {"partitions": 2},
        {1: _replan(DEEP, weir.Allowance({hops(DEEP)[0]: 0.5}), "pairs are few")},
    ),
}
LOCAL = {
    "deep": Run({**BAND, "plan": DEEP, "driver_order": ["c", "a", "b"]}),
    "composed-time": Run({**KEY, "plan": windowed(TimeWindow(5 * SECOND))}),
    "composed-rows": Run({**KEY, "plan": windowed(RowWindow(12))}),
    "probes": Run(
        {**KEY, "plan": MJOIN, "allowance": PROBES},
        then={2: lambda query: query.allow(None, "golden: enough")},
    ),
    "timestamp": Run({**KEY, "driver_order": "timestamp"}),
    "round-robin": Run({**KEY, "driver_order": "round-robin"}),
    "consumption-rate": Run({**TWO_KEYS, "driver_order": "consumption-rate"}),
    "replan-twice": Run(
        {**KEY, "plan": DEEP},
        then={1: _replan(REORDERED, None, "try it"), 2: _replan(DEEP, None, "and back")},
    ),
    "time-bounds": Run(
        {
            "on": "a.k = b.k AND b.k = c.k AND b.v <> c.v AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECOND",
            "within": {"a": "7 seconds", "c": "6 seconds"},
            "select": "a.id AS a, b.id AS b, c.id AS c, b.ts - a.ts AS took",
        }
    ),
}
LOCAL = {name: replace(run, brief=True) for name, run in LOCAL.items()}
# A window so short that the master stream has several segments.
SHORT = {**TWO_KEYS, "within": "1 second", "basic": None}
SPARK = {
    "share": Run(BAND, {"partitions": 2, "spread": "share"}),
    "share-call": Run(
        {**BAND, "driver_order": "least-work"},
        {"partitions": 2, "spread": "share", "sink": "call"},
        brief=True,
    ),
    "psp": Run(BAND, {"partitions": 3, "spread": "psp"}),
    "psp-call": Run(
        {**BAND, "fresh": "8 seconds"}, {"partitions": 2, "spread": "psp", "sink": "call"}, brief=True
    ),
    "atr": Run(SHORT, {"partitions": 2, "spread": "atr"}, values=4),
    "atr-call": Run(
        {**SHORT, "plan": DEEP}, {"partitions": 2, "spread": "atr", "sink": "call"}, values=4, brief=True
    ),
}


def batches(values: int) -> list[dict[str, pa.Table]]:
    """Five seconds each, rows in any order; some late, some without a time or a key."""
    rng = np.random.default_rng(17)

    def table(number: int) -> pa.Table:
        times = normal.START + number * EVERY + 1000 * rng.integers(-3000, EVERY // 1000, ROWS)
        columns = {
            "ts": pa.array(times, SCHEMA.field("ts").type, mask=rng.random(ROWS) < 0.03),
            "k": pa.array(rng.integers(0, values, ROWS), mask=rng.random(ROWS) < 0.03),
            "v": pa.array(rng.integers(0, values, ROWS), mask=rng.random(ROWS) < 0.05),
            "id": pa.array(number * ROWS + np.arange(ROWS)),
        }
        return pa.table(columns, SCHEMA)

    return [{name: table(number) for name in "abc"} for number in range(BATCHES)]


def on_local(run: Run) -> dict[str, Any]:
    """The run in this process."""
    query = weir.join(**dict.fromkeys("abc", SCHEMA), **run.settings).start()
    found = []
    for number, tables in enumerate(batches(run.values)):
        run.then.get(number, lambda query: None)(query)
        rows = query.process(tables).to_pylist()
        found.append(
            {
                "progress": normal.progress(query.lastProgress, names.PROGRESS_LOCAL),
                "results": normal.results(rows),
                "slices": normal.slices(names.slices_of(query)),
                "statistics": normal.learned(names.learned_of(query)),
            }
        )
    for one in found if run.brief else found[:-1]:
        one["slices"] = normal.digested(one["slices"])
    return {"batches": normal.changes(found)}


@dataclass
class OnSpark:
    """A run on Spark, in a folder of its own; it may be started again after it died."""

    spark: SparkSession
    folder: Path
    run: Run
    calls: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        _write(self.folder / "in", batches(self.run.values))

    def start(self, dies_at: tuple[str, int] | None = None) -> list[Any]:
        """Run until all is done, or until it dies; what its progress says."""
        more = dict(self.run.spark)
        sink = more.pop("sink", "parquet")
        frames = {name: self._frame(name) for name in "abc"}
        writer = weir.join(**frames, **self.run.settings, **more).writeStream
        writer = writer.option("checkpointLocation", str(self.folder / "ckpt")).trigger(availableNow=True)
        if sink == "call":
            writer = writer.foreachBatch(self._call)
        else:
            writer = writer.format(sink).option("path", str(self.folder / "out"))
        started, queries = threading.Event(), []

        def act(phase: str, batch: int) -> None:
            if phase == names.BEFORE_DECIDING and batch in self.run.then:
                assert started.wait(60)
                self.run.then[batch](queries[0])
            if (phase, batch) == dies_at:
                raise ConnectionError("golden: the machine is gone")

        stop = names.listen(act)
        try:
            queries.append(writer.start())
            started.set()
            assert queries[0].awaitTermination(120), "the query is still running"
        finally:
            stop()
            for query in queries:
                query.stop()
        return normal.changes([normal.progress(p, names.PROGRESS_SPARK) for p in queries[0].recentProgress])

    def results(self) -> dict[str, Any]:
        """All that was put out so far."""
        if self.calls:
            return {f"batch {one['batch']}": one["results"] for one in self.calls}
        if not (self.folder / "out").exists():
            return {}
        return {
            "all": normal.results(ds.dataset(self.folder / "out", format="parquet").to_table().to_pylist())
        }

    def checkpoint(self) -> dict[str, Any]:
        """The decisions and manifests of all batches."""
        manifests = [normal.manifest(one) for one in self._stored(names.MANIFESTS)]
        for manifest in manifests if self.run.brief else manifests[:-1]:
            for part in manifest["partitions"].values():
                part["slices"] = normal.digested(part.get("slices", []))
        decisions = [normal.decision(one) for one in self._stored(names.DECISIONS)]
        return {"decisions": normal.changes(decisions), "manifests": normal.changes(manifests)}

    def _stored(self, below: str) -> list[dict[str, Any]]:
        """What counts of each batch: of several attempts, the last."""
        paths = sorted((self.folder / "ckpt" / below).glob("*.json"))
        last = {int(path.stem.partition("-")[0]): path for path in paths}
        return [normal.stored(last[batch]) for batch in sorted(last)]

    def _call(self, frame: DataFrame, batch: int) -> None:
        self.calls.append({"batch": batch, "results": normal.results(frame.toArrow().to_pylist())})

    def _frame(self, name: str) -> DataFrame:
        path = str(self.folder / "in" / name)
        return self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(path)


def _write(root: Path, tables: Sequence[Mapping[str, pa.Table]]) -> None:
    """A file per stream and batch; their times of change say in which order Spark reads them."""
    for number, batch in enumerate(tables):
        for name, table in batch.items():
            path = root / name / f"{number:04d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
