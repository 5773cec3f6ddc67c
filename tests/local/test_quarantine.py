"""`on_error="quarantine"` in one process: what fails is left out and shown, all else is as without it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.kernel.quarantine import MAX_CHARACTERS, MAX_ROWS
from weir.plan.tree import join as tree

SECOND, ROWS = 1_000_000, 60
START = 1_700_000_000 * SECOND


def make(seed: int, keys: int = 4) -> dict[str, pa.Table]:
    """Streams a, b and c; zeros and NULLs are frequent, and event times tell rows apart."""
    rng = np.random.default_rng(seed)

    def table(offset: int) -> pa.Table:
        columns = {
            "ts": pa.array(START + rng.permutation(ROWS) * SECOND + offset, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, keys, ROWS)),
            "x": pa.array(rng.integers(-1, 3, ROWS), mask=rng.random(ROWS) < 0.1),
            "y": pa.array(rng.integers(0, 4, ROWS), mask=rng.random(ROWS) < 0.1),
        }
        return pa.table(columns)

    return {name: table(number) for number, name in enumerate("abc")}


def ask_duckdb(tables: dict[str, pa.Table], select: str, where: str) -> Counter[tuple[Any, ...]]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        connection.register(name, table)
    return Counter(connection.sql(f"SELECT {select} FROM {', '.join(tables)} WHERE {where}").fetchall())


def run(
    tables: dict[str, pa.Table], batches: int, **asked: Any
) -> tuple[Counter[tuple[Any, ...]], list[dict[str, Any]]]:
    """The results, and what was left out, of a join whose rows come in some batches."""
    query = weir.join(**{name: t.schema for name, t in tables.items()}, late="1 day", **asked).start()
    results, left_out = Counter[tuple[Any, ...]](), []
    for number in range(batches):
        part = {name: t.take(list(range(number, len(t), batches))) for name, t in tables.items()}
        results += Counter(zip(*query.process(part).to_pydict().values(), strict=True))
        assert query.lastProgress is not None
        assert query.lastProgress["weir"]["numRowsQuarantined"] == query.quarantined.num_rows
        left_out += [{**row, "rows": dict(row["rows"])} for row in query.quarantined.to_pylist()]
        assert {row["batch"] for row in query.quarantined.to_pylist()} <= {number}
    return results, left_out


def times_of(left_out: list[dict[str, Any]], *streams: str) -> Counter[tuple[Any, ...]]:
    """The event times of rows that were left out, where these are rows of just these streams."""
    shown = (row["rows"] for row in left_out if sorted(row["rows"]) == sorted(streams))
    return Counter(tuple(rows[name]["event_time"] for name in streams) for rows in shown)


PAIR = "a.k = b.k"
IDS = "a.ts AS at, b.ts AS bt"
# Condition, SELECT list, and in DuckDB: the condition for rows that do not fail, the pairs for which the
# kernel finds an error, and the stream whose rows fail by themselves.
CASES = [
    (f"{PAIR} AND a.x / b.y > 0", IDS, f"{PAIR} AND b.y <> 0 AND a.x / b.y > 0",
     f"{PAIR} AND a.x IS NOT NULL AND b.y = 0", None),
    (PAIR, f"{IDS}, a.x % b.y AS m, b.x div a.x AS d", f"{PAIR} AND (b.y <> 0 OR a.x IS NULL OR b.y IS NULL) "
     "AND (a.x <> 0 OR a.x IS NULL OR b.x IS NULL)",
     f"{PAIR} AND ((a.x IS NOT NULL AND b.y = 0) OR (b.x IS NOT NULL AND a.x = 0))", None),
    (f"{PAIR} AND 6 / b.y > 2", IDS, f"{PAIR} AND b.y <> 0 AND 6 / b.y > 2", None, "b.y = 0"),
    (f"{PAIR} AND 6 / b.y > a.x", IDS, f"{PAIR} AND b.y <> 0 AND 6 / b.y > a.x", None, "b.y = 0"),
    ("6 / b.y = a.x + a.k", IDS, "b.y <> 0 AND 6 / b.y = a.x + a.k", None, "b.y = 0"),
    ("6 / b.y <=> a.x + a.k", IDS, "b.y IS DISTINCT FROM 0 AND 6 / b.y IS NOT DISTINCT FROM a.x + a.k",
     None, "b.y = 0"),
    ("abs(6 / b.y - a.x) <= 1", IDS, "b.y <> 0 AND abs(6 / b.y - a.x) <= 1", None, "b.y = 0"),
    (f"{PAIR} AND b.y <> 0 AND b.x <> a.x AND 6 / b.y / (a.x - b.x) > 1", IDS,
     f"{PAIR} AND b.y <> 0 AND b.x <> a.x AND 6 / b.y / (a.x - b.x) > 1", None, None),
]  # fmt: skip


@pytest.mark.parametrize("batches", [1, 7])
@pytest.mark.parametrize(("on", "select", "answer", "pairs", "alone"), CASES)
def test_what_fails_is_left_out_and_shown(
    batches: int, on: str, select: str, answer: str, pairs: str | None, alone: str | None
) -> None:
    tables = {name: table for name, table in make(3).items() if name != "c"}
    asked = {"on": on, "select": select, "within": "1 day"}
    results, left_out = run(tables, batches, **asked, on_error="quarantine")
    columns = select.replace(" div ", " // ")
    assert results == ask_duckdb(tables, columns, answer) and len(results) > 20
    expected = Counter() if pairs is None else ask_duckdb(tables, "a.ts, b.ts", pairs)
    assert times_of(left_out, "a", "b") == expected
    rows = Counter() if alone is None else ask_duckdb({"b": tables["b"]}, "b.ts", alone)
    assert times_of(left_out, "b") == rows
    assert len(left_out) == sum(expected.values()) + sum(rows.values())
    assert bool(left_out) == (pairs is not None or alone is not None)
    assert all("division by zero" in row["error"] for row in left_out)
    without_errors, _ = run(tables, batches, **asked, on_error="null")
    assert not results - without_errors
    if pairs is None or select == IDS:  # the value of a condition is NULL where it fails
        assert "<=>" in on or results == without_errors


@pytest.mark.parametrize("plan", [tree("a", "b", "c"), tree(tree("a", "b"), "c"), tree(tree("b", "c"), "a")])
def test_a_side_over_two_streams_is_left_out_before_the_third_comes(plan: Any) -> None:
    tables = make(4)
    on = "a.k = b.k AND b.k = c.k AND a.x / b.y < c.x AND a.ts <> b.ts"
    asked = {"on": on, "select": "a.ts AS at, b.ts AS bt, c.ts AS ct", "within": "20 seconds", "plan": plan}
    results, left_out = run(tables, 3, **asked, on_error="quarantine")
    assert results and results == run(tables, 3, **asked, on_error="null")[0]
    failing = ask_duckdb(tables, "a.ts, b.ts", "a.k = b.k AND a.x IS NOT NULL AND b.y = 0")
    found = [(row["rows"]["a"]["event_time"], row["rows"]["b"]["event_time"]) for row in left_out]
    assert found and set(found) <= set(failing)


def test_a_record_shows_what_was_read() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = {
        "a": [{"ts": noon, "s": "7O", "n": 1}],
        "b": [{"ts": noon + timedelta(minutes=1), "d": [15, None]}],
    }
    on = "cast(concat(a.s, cast(b.d[0] AS string)) AS int) > a.n"
    joined = weir.join(**rows, on=on, within="1 hour", select="a.n", on_error="quarantine")
    with pytest.raises(weir.QueryError, match=r"nothing was evaluated yet; call collect\(\)"):
        _ = joined.quarantined
    assert joined.collect() == []
    (record,) = joined.quarantined.to_pylist()
    assert record["batch"] == 0 and record["expression"].startswith(
        "cast(concat(a.s, cast(b.d[0] AS string))"
    )
    assert record["error"].endswith("fails: '7O15' is not a valid int")
    shown = dict(record["rows"])
    assert dict(shown["a"]["columns"]) == {"s": "7O", "n": "1"}
    assert dict(shown["b"]["columns"]) == {"d": "[15, null]"}
    assert str(shown["b"]["event_time"]) == "2024-05-01 12:01:00+00:00"


@pytest.mark.parametrize("on_error", ["null", "quarantine"])
def test_text_that_is_not_utf_8_ends_no_query(on_error: Any) -> None:
    times = pa.array([START, START], pa.timestamp("us", "UTC"))
    a = pa.table({"ts": times, "s": pa.array([b"Ok", b"\xff\xfe"], pa.binary()).view(pa.string())})
    b = pa.table({"ts": times[:1], "t": ["x"]})
    on = "lower(concat(a.s, b.t)) <> 'q' AND concat(a.s, b.t) ILIKE 'ok%'"
    joined = weir.join(a=a, b=b, on=on, within="1 hour", select="a.s", on_error=on_error)
    assert joined.to_arrow().to_pylist() == [{"s": "Ok"}]
    shown = [dict(dict(row["rows"])["a"]["columns"]) for row in joined.quarantined.to_pylist()]
    assert shown == ([] if on_error == "null" else [{"s": "b'\\xff\\xfe'"}])


def test_what_is_kept_is_bounded_and_all_is_counted() -> None:
    tables = {name: table.set_column(3, "y", pa.array([0] * ROWS)) for name, table in make(5, keys=1).items()}
    long = pa.array(["x" * 5000] * ROWS)
    tables = {name: table.append_column("s", long) for name, table in tables.items() if name != "c"}
    on = "a.k = b.k AND length(a.s) / b.y > 1"
    query = weir.join(**tables, on=on, within="1 day", on_error="quarantine").start()
    assert query.process(tables).num_rows == 0
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["numRowsQuarantined"] == ROWS * ROWS > MAX_ROWS
    assert query.quarantined.num_rows == MAX_ROWS
    value = dict(dict(query.quarantined["rows"][0].as_py())["a"]["columns"])["s"]
    assert value == "x" * MAX_CHARACTERS + "... (5000 characters)"


def test_rows_that_fail_count_in_a_row_window() -> None:
    times = pa.array([START + number * SECOND for number in range(4)], pa.timestamp("us", "UTC"))
    a = pa.table({"ts": times, "x": [1, 2, 0, 3]})
    b = pa.table({"ts": pa.array([START + 10 * SECOND], pa.timestamp("us", "UTC")), "y": [5]})
    for on_error, left_out in (("quarantine", 1), ("null", 0)):
        joined = weir.join(
            a=a, b=b, on="6 / a.x < b.y", within={"a": weir.rows(2), "b": weir.rows(2)},
            select="a.x", on_error=on_error,
        )  # fmt: skip
        assert joined.to_arrow().to_pylist() == [{"x": 3}]
        assert joined.quarantined.num_rows == left_out


def test_rows_dropped_for_their_time_are_kept_whole() -> None:
    """By brute force: what is before the watermark, which is the newest time so far of the slower stream."""
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "s": pa.string()})
    seconds = {"a": [[10, 11], [3, None, 12], [13, 2]], "b": [[10], [12, 1], [5, 12]]}
    asked: dict[str, Any] = {"on": "a.k = b.k", "within": "1 minute", "select": "a.s", "late": "1 second"}
    for on_error in ("quarantine", "fail"):
        query = weir.join(a=schema, b=schema, **asked, on_error=on_error).start()
        kept = []
        for number in range(3):
            tables = {}
            for name, batches in seconds.items():
                times = [None if s is None else datetime(2024, 1, 2, 12, 0, s) for s in batches[number]]
                texts = [f"{name}{second}" for second in batches[number]]
                tables[name] = pa.table([times, [1] * len(times), texts], schema=schema)
            query.process(tables)
            kept += query.quarantined.to_pylist()
        counted = query.lastProgress
        assert counted is not None and counted["weir"]["numRowsQuarantined"] == 0
        shown = [(row["batch"], row["expression"], row["error"].split(":")[0], row["rows"]) for row in kept]
        wanted = [
            (1, "a", "late", 3),
            (1, "a", "without an event time", None),
            (1, "b", "late", 1),
            (2, "a", "late", 2),
            (2, "b", "late", 5),
        ]
        assert shown == ([] if on_error == "fail" else [_show_dropped(*row) for row in wanted])


def _show_dropped(batch: int, stream: str, why: str, second: int | None) -> tuple[Any, ...]:
    time = None if second is None else datetime(2024, 1, 2, 12, 0, second)
    columns = [("ts", None if time is None else str(time)), ("k", "1"), ("s", f"{stream}{second}")]
    event_time = None if time is None else time.replace(tzinfo=UTC)
    return batch, f"{stream}.ts", why, [(stream, {"event_time": event_time, "columns": columns})]


def test_dropped_rows_do_not_crowd_out_those_that_fail() -> None:
    schema = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
    query = weir.join(
        a=schema, b=schema, on="a.k = b.k AND 1 / a.k = 1", within="1 minute", on_error="quarantine"
    ).start()

    def rows(second: int, count: int, key: int = 1) -> pa.Table:
        return pa.table([[datetime(2024, 1, 2, 12, 0, second)] * count, [key] * count], schema=schema)

    query.process({"a": rows(30, 1), "b": rows(30, 1)})
    late = pa.concat_tables([rows(3, 2 * MAX_ROWS), rows(40, 1, key=0)])
    query.process({"a": late, "b": rows(40, 1, key=0)})
    errors = Counter(error.split(":")[0] for error in query.quarantined["error"].to_pylist())
    assert errors == {"late": MAX_ROWS, "1.0 / a.k fails": 1}
