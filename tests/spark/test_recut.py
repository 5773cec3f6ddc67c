"""Slices cut again for another number of partitions hold the same rows and give the same results.

This needs no Spark: the hash that Spark computes is replaced by a remainder.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.codec import from_json
from weir.kernel.batch import build
from weir.kernel.decision import Decision
from weir.kernel.key_values import read_key
from weir.kernel.migration_state import MigrationState, StateBuild, unite
from weir.kernel.physical_plan import compile_plan
from weir.kernel.plan_migration import PhysicalPlans
from weir.kernel.state import State
from weir.partition.placement import Placement
from weir.plan.tree import Join
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.commit import FinishedBatch, next_manifest
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import Assignment, PartitionBatch
from weir.spark.recut import KEY, ROW, SLICE, CutReport, KeyReader, SegmentReader, SliceCutter, StoredSlices
from weir.spark.repartition import choose_slices, gather_pieces
from weir.spark.routing import choose_routing
from weir.spark.slice_files import FileStore
from weir.spark.task import FIRST_SEGMENT, LAST_SEGMENT, PARTITION
from weir.stats.batch_counts import BatchCounts

SECOND = 1_000_000
MJOIN, LEFT, RIGHT = tree("a", "b", "c"), tree(tree("a", "b"), "c"), tree("a", tree("b", "c"))
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
QUERY = build_query(
    dict.fromkeys("abc", SCHEMA),
    QueryOptions(
        on="a.k = b.k AND b.k = c.k",
        within="8 seconds",
        late="6 seconds",
        select="a.id, b.id AS bid, c.id AS cid",
    ),
)
SEGMENTS = choose_routing(QUERY, MJOIN, "atr", 2, 2, True, "share").segments
assert SEGMENTS is not None
REACH = {"a": (0, 0)} | {name: (back, ahead) for name, back, ahead in SEGMENTS.reach}
LENGTH = SEGMENTS.length // 8  # shorter ones, so that rows are copied often

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [0, -7, 2**31 - 1]),
    "long": (pa.int64(), [0, -(2**63), 2**63 - 1]),
    "float": (pa.float32(), [0.0, -0.0, 0.5, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.0, -0.0, 0.1, float("nan"), -1e300]),
    "decimal": (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("-1.25"), Decimal("99999999.99")]),
    "wide decimal": (pa.decimal128(30, 2), [Decimal("0.00"), Decimal("-1.25"), Decimal(10**25)]),
    "string": (pa.string(), ["", "ä", "seven b", "more than seven bytes"]),
    "binary": (pa.binary(), [b"", b"\xff\x00", b"more than seven bytes"]),
    "date": (pa.date32(), [date(1969, 12, 31), date(2024, 2, 29)]),
    "timestamp": (pa.timestamp("us"), [datetime(1969, 12, 31), datetime(2024, 2, 29, 1, 2, 3, 4)]),
    "interval": (pa.duration("us"), [timedelta(0), timedelta(days=-3, microseconds=5)]),
    "boolean": (pa.bool_(), [False, True]),
}


@pytest.mark.parametrize("equals", ["=", "<=>"])
@pytest.mark.parametrize("kind", VALUES)
def test_keys_are_read_back_from_slices(kind: str, equals: str) -> None:
    type_, values = VALUES[kind]
    values = [*values, *values, *([None] * (equals == "<=>"))]
    schema = pa.schema({"ts": pa.timestamp("us"), "k": type_})
    query = build_query(
        dict.fromkeys("abc", schema),
        QueryOptions(on=f"a.k {equals} b.k AND b.k {equals} c.k", within="8 seconds", select="a.ts"),
    )
    physical = compile_plan(query, tree(tree("a", "b"), "c"))
    rows = pa.table([pa.array(range(len(values)), pa.timestamp("us")), pa.array(values, type_)], schema)
    tables = dict.fromkeys("ab", rows)
    state = build(physical, Decision(physical.plan, ("a", "b", "c")), State(), tables, 0, BatchCounts())
    (key,) = query.predicate.classes
    (stored,) = state.of("a")
    in_time = np.argsort(stored.times())
    read = read_key(stored, key).take(pa.array(in_time))
    assert read.type == key.domain
    wanted = rows["k"].combine_chunks().cast(key.domain)
    if not pa.types.is_floating(type_):
        assert read.equals(wanted)
    elif equals == "=":  # Spark, too, turns -0.0 into 0.0 before it hashes
        np.testing.assert_array_equal(read.to_numpy(), wanted.to_numpy() + 0.0)
    joined = [value for part in state.of("(a b)") for value in read_key(part, key).to_pylist()]
    pairs = Counter(map(str, joined))
    own = Counter(map(str, read.to_pylist()))
    assert len(joined) and all(pairs[value] >= count for value, count in own.items() if value != "-0.0")


@dataclass
class Partitioned:
    """Runs batches over partitions by key or by segments, as the engine on Spark does."""

    spread: str
    store: FileStore
    plans: PhysicalPlans = field(default_factory=lambda: PhysicalPlans(QUERY))
    manifest: Manifest = field(default_factory=Manifest)
    results: Counter[Any] = field(default_factory=Counter)

    def run(self, tables: Mapping[str, pa.Table], partitions: int, plan: Join, steps: int | None) -> None:
        old = self.manifest.placement or Placement(self.spread, partitions)
        new = Placement(self.spread, partitions, relocate=old.partitions != partitions)
        decision = Decision(plan, ("a", "b", "c"), placement=new, migration_steps=steps)
        before = self.manifest.prepare_for(plan, self.plans)
        if new.relocate and before.entries:
            before = self.cut(before, decision, old.partitions, partitions)
        number, physical = before.batch + 1, self.plans.of(plan)
        assignment = Assignment(physical, decision, number, before.watermark, before.parts, self.store)
        tasks = []
        for partition in range(partitions):
            own = {name: self.pick(name, table, partition, partitions) for name, table in tables.items()}
            if not any(table.num_rows for table in own.values()):
                continue  # it stays behind when a plan changes, as on Spark
            running = PartitionBatch(assignment, partition, own, thread_time)
            for chunk in running.probe():
                columns = [chunk[name].to_pylist() for name in chunk.column_names]
                self.results.update(zip(*columns, strict=True))
            tasks.append(running.report())
        finished = FinishedBatch(number, decision, before, tasks, True)
        self.manifest, _ = next_manifest(finished, physical, False, None)

    def pick(self, name: str, table: pa.Table, partition: int, partitions: int) -> pa.Table:
        if self.spread == "hash":
            return table.filter(pa.array(table["k"].to_numpy() % partitions == partition))
        times, (back, ahead) = table["ts"].cast(pa.int64()).to_numpy(), REACH[name]
        ends = zip((times - back) // LENGTH, (times + ahead) // LENGTH, strict=True)
        reached = [any(s % partitions == partition for s in range(first, last + 1)) for first, last in ends]
        return table.filter(pa.array(reached, pa.bool_()))

    def cut(self, before: Manifest, decision: Decision, old: int, new: int) -> Manifest:
        migration, stored, homes = choose_slices(before, decision.plan, QUERY, self.store)
        numbers = pa.RecordBatch.from_pydict({"id": list(range(len(stored.entries)))})
        reader = (
            KeyReader(stored, QUERY.predicate.classes[0])
            if self.spread == "hash"
            else SegmentReader(stored, homes, old, LENGTH, REACH)
        )
        placed = [place(rows, new) for rows in reader(iter([numbers]))]
        return replace(before, parts=gather_pieces(cut_all(stored, placed), migration))


def place(rows: pa.RecordBatch, partitions: int) -> pa.RecordBatch:
    """What Spark does between the two steps."""
    if KEY in rows.schema.names:
        return rows.append_column(PARTITION, pa.array(rows[KEY].to_numpy() % partitions))
    placed = {
        (number, row, segment % partitions)
        for number, row, first, last in zip(
            *(rows[name].to_pylist() for name in (SLICE, ROW, FIRST_SEGMENT, LAST_SEGMENT)), strict=True
        )
        for segment in range(first, last + 1)
    }
    columns = zip(*sorted(placed), strict=True) if placed else ([], [], [])
    return pa.RecordBatch.from_pydict(dict(zip((SLICE, ROW, PARTITION), map(list, columns), strict=True)))


def cut_all(stored: StoredSlices, placed: list[pa.RecordBatch]) -> list[CutReport]:
    reports = SliceCutter(stored)(iter(placed))
    return [from_json(CutReport, json.loads(row["report"][0].as_py())) for row in reports]


@st.composite
def feeds(draw: st.DrawFn) -> list[dict[str, pa.Table]]:
    """Batches of three streams, 4 seconds each, rows up to 6 seconds late; some leave partitions idle."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    keys, sizes = draw(st.integers(1, 9)), draw(st.lists(st.sampled_from([1, 3, 30]), min_size=2, max_size=6))
    return make_feed(rng, keys, sizes)


def make_feed(rng: np.random.Generator, keys: int, sizes: list[int]) -> list[dict[str, pa.Table]]:
    def table(batch: int, rows: int) -> pa.Table:
        times = batch * 4 * SECOND + rng.integers(-2 * SECOND, 4 * SECOND, rows)
        ids = 100 * batch + np.arange(rows)
        return pa.table([pa.array(times, pa.timestamp("us")), rng.integers(0, keys, rows), ids], SCHEMA)

    return [{name: table(batch, rows) for name in "abc"} for batch, rows in enumerate(sizes)]


def expected(feed: list[dict[str, pa.Table]]) -> Counter[Any]:
    with duckdb.connect() as connection:
        for name in "abc":
            connection.register(name, pa.concat_tables([tables[name] for tables in feed]))
        near = " AND ".join(
            f"abs(epoch_us({one}.ts) - epoch_us({other}.ts)) < {8 * SECOND}"
            for one, other in ("ab", "bc", "ac")
        )
        asked = f"SELECT a.id, b.id, c.id FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {near}"
        return Counter(connection.execute(asked).fetchall())


NON_EMPTY: Counter[str] = Counter()


@settings(max_examples=60)
@given(
    feed=feeds(),
    partitions=st.lists(st.integers(1, 4), min_size=6, max_size=6),
    plans=st.lists(st.sampled_from([MJOIN, LEFT, RIGHT]), min_size=6, max_size=6),
    steps=st.sampled_from([1, 60, None]),
    spread=st.sampled_from(["hash", "atr"]),
)
def check_any_changes(
    feed: list[dict[str, pa.Table]],
    partitions: list[int],
    plans: list[Join],
    steps: int | None,
    spread: str,
) -> None:
    with TemporaryDirectory() as folder:
        running = Partitioned(spread, FileStore(folder))
        for tables, count, plan in zip(feed, partitions, plans, strict=False):
            running.run(tables, count, plan, steps)
    answer = expected(feed)
    NON_EMPTY.update({"cases": 1, "non-empty": bool(answer)})
    assert running.results == answer


def test_any_changes_of_partitions_and_plans_keep_all_results() -> None:
    check_any_changes()
    assert NON_EMPTY["non-empty"] > 0.5 * NON_EMPTY["cases"]


def test_a_slice_whose_rows_stay_together_is_kept_as_it_is(tmp_path: Path) -> None:
    running = Partitioned("hash", FileStore(str(tmp_path)))
    rows = pa.table([pa.array([1, 2, 3], pa.timestamp("us")), [0, 1, 2], [0, 1, 2]], SCHEMA)
    running.run(dict.fromkeys("abc", rows), 3, LEFT, None)
    files = running.manifest.files
    assert len(running.manifest.parts) == 3
    running.run(dict.fromkeys("abc", rows.slice(0, 0)), 1, LEFT, None)
    assert running.manifest.files <= files | {entry.file for entry in running.manifest.parts[0].slices}
    cut = running.cut(running.manifest, Decision(LEFT, ("a", "b", "c")), 1, 4)
    by_node = Counter((number, entry.node) for number, part in cut.parts.items() for entry in part.slices)
    assert by_node == {(k, node): 1 for k in range(3) for node in ("a", "b", "c", "(a b)")}


@pytest.mark.parametrize("spread", ["hash", "atr"])
@pytest.mark.parametrize(("first", "second"), [(MJOIN, LEFT), (RIGHT, LEFT)])
def test_a_partition_that_stayed_behind_loses_nothing(
    first: Join, second: Join, spread: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)

    def rows(batch: int, keys: int) -> dict[str, pa.Table]:
        times = [2 * batch * SECOND + rng.integers(0, SECOND, 6) for _ in "abc"]
        ids, key = 10 * batch + np.arange(6), np.arange(6) % keys
        return {
            name: pa.table([pa.array(time, pa.timestamp("us")), key, ids], SCHEMA)
            for name, time in zip("abc", times, strict=True)
        }

    feed = [rows(0, 2), rows(1, 1), rows(2, 2), rows(3, 2)]
    running = Partitioned(spread, FileStore(str(tmp_path)))
    running.run(feed[0], 2, first, None)
    running.run(feed[1], 2, second, None)  # with `hash`, partition 1 gets no rows
    assert (len(running.manifest.active_plans) == 2) == (spread == "hash")
    running.run(feed[2], 3, second, 1)
    running.run(feed[3], 1, second, 1)
    assert running.results == expected(feed) and running.results.total() > 500


@pytest.mark.parametrize(
    ("migrations", "target", "together"),
    [
        ([MigrationState(LEFT), MigrationState(LEFT)], LEFT, MigrationState(LEFT)),
        # One partition has migrated and the other has not: neither's states are in both.
        ([MigrationState(LEFT), MigrationState(RIGHT)], LEFT, MigrationState(MJOIN)),
        ([MigrationState(LEFT), MigrationState(MJOIN)], LEFT, MigrationState(MJOIN)),
        # What is done in one and built in the other is begun again.
        (
            [
                MigrationState(MJOIN, done=("(a b)",)),
                MigrationState(MJOIN, building=StateBuild("(a b)", "a", 3)),
            ],
            LEFT,
            MigrationState(MJOIN),
        ),
        ([MigrationState(RIGHT), MigrationState(RIGHT, done=("(a b)",))], LEFT, MigrationState(RIGHT)),
    ],
)
def test_partitions_agree_on_what_all_have(
    migrations: list[MigrationState], target: Join, together: MigrationState
) -> None:
    assert unite(migrations, target, MJOIN) == together
