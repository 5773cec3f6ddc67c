"""What clocks may do to a join: backfills, silent streams and wrong clocks lose no row that came in time."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import weir
from weir.local.query import LocalQuery
from weir.runtime.decide import DecidedPlan, Policy
from weir.runtime.watermark import find_idle_streams, update_last_arrivals

SECOND = 1_000_000
START = 1_700_000_000 * SECOND  # of the rows
TODAY = 1_800_000_000 * SECOND  # by the wall clock
YEAR_9999 = 253_370_764_800 * SECOND
WINDOW, PER_SECOND = 10, 3
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
Results = Counter[tuple[int, int]]


def span(name: str, first: float, last: float) -> pa.Table:
    """A stream's rows between two seconds, in order; each has an id of its own."""
    rng = np.random.default_rng([ord(name), 10_000 + round(first * 10)])
    times = np.sort(
        rng.integers(round(first * SECOND), round(last * SECOND), round((last - first) * PER_SECOND))
    )
    return table(START + times, rng.integers(0, 4, len(times)), round(first * 1000) + np.arange(len(times)))


def table(times: Any, keys: Any, ids: Any) -> pa.Table:
    return pa.table([pa.array(times, SCHEMA.field("ts").type), pa.array(keys), pa.array(ids)], schema=SCHEMA)


BAD_ROW = table([YEAR_9999], [1], [-1])
Batches = list[dict[str, pa.Table]]


def live(batches: int, lag: float = 0) -> Batches:
    """A second of each stream in a batch; b is behind."""
    return [{"a": span("a", n, n + 1), "b": span("b", n - lag, n + 1 - lag)} for n in range(batches)]


def backfill() -> Batches:
    """160 seconds of both: a comes four times as fast while both have data, and then nothing more of it."""
    fast = [span("a", 40 * n, 40 * n + 40) if n < 4 else SCHEMA.empty_table() for n in range(16)]
    return [{"a": rows, "b": span("b", 10 * n, 10 * n + 10)} for n, rows in enumerate(fast)]


@dataclass
class Run:
    """All results of a query, and its progress batch by batch."""

    results: Results = field(default_factory=Counter)
    progress: list[Mapping[str, Any]] = field(default_factory=list)

    def dropped(self, why: str) -> dict[str, int]:
        total: Counter[str] = Counter()
        for section in self.progress:
            total += {name: rows[why] for name, rows in section["streams"].items()}
        return dict(total)


def make_query(
    idle: int | None = None,
    ahead: int | None = 3600,
    clock: Iterator[int] | None = None,
    zone: str = "UTC",
) -> LocalQuery:
    """A join by key; the wall clock goes on by a second a batch."""
    asked: dict[str, Any] = {"on": "a.k = b.k", "within": f"{WINDOW} seconds"}
    join = weir.join(a=SCHEMA, b=SCHEMA, **asked, select="a.id AS a, b.id AS b", session={"timeZone": zone})
    now = clock or count(TODAY, SECOND)
    lengths = [None if length is None else length * SECOND for length in (idle, ahead)]
    return LocalQuery(Policy(join.query, "auto", *lengths, now.__next__), DecidedPlan(join.planned.plan))


def run(
    batches: Batches,
    idle: int | None = None,
    ahead: int | None = 3600,
    clock: Iterator[int] | None = None,
    zone: str = "UTC",
) -> Run:
    """Run a join by key."""
    query, done = make_query(idle, ahead, clock, zone), Run()
    for batch in batches:
        found = query.process(batch)
        done.results.update(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
        assert query.lastProgress is not None
        done.progress.append(query.lastProgress["weir"])
    return done


def joined(batches: Sequence[Mapping[str, pa.Table]]) -> Results:
    """The same join of all rows by DuckDB."""
    a, b = (pa.concat_tables([batch[name] for batch in batches]) for name in "ab")
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("a", a)
        connection.register("b", b)
        near = f"abs(epoch_us(a.ts) - epoch_us(b.ts)) < {WINDOW * SECOND}"
        rows = connection.execute(f"SELECT a.id, b.id FROM a, b WHERE a.k = b.k AND {near}").fetchall()
    return Counter(rows)


@pytest.mark.parametrize("idle", [None, 3, 10])
def test_a_backfill_loses_nothing_to_idle(idle: int | None) -> None:
    batches = backfill()
    done, wanted = run(batches, idle), joined(batches)
    assert wanted.total() > 2000 and done.results == wanted
    assert done.dropped("numRowsDroppedByWatermark") == {}
    # b is far behind all the time, and never idle; a is, once it has ended.
    assert {name for section in done.progress for name in section["idle"]} == ({"a"} if idle else set())


def test_a_stream_that_is_silent_stops_holding_the_watermark() -> None:
    batches = live(30)
    for number in range(5, 25):
        batches[number]["b"] = SCHEMA.empty_table()
    batches[25]["b"] = span("b", 4.5, 5)  # comes after the watermark has left it behind
    done = run(batches, idle=10)
    assert done.dropped("numRowsDroppedByWatermark") == {"b": len(batches[25]["b"])}
    assert done.results == joined([*batches[:25], {**batches[25], "b": SCHEMA.empty_table()}, *batches[26:]])
    idle = [number for number, section in enumerate(done.progress) if section["idle"]]
    assert idle == list(range(14, 25)), "the last row came in batch 4, ten seconds before batch 14"
    rows = [section["state"]["a"]["numRowsTotal"] for section in done.progress]
    assert max(rows[16:]) < max(rows[:14]), "what b does not need any more is given up"
    held = [section["watermarkHeldBy"]["stream"] for section in done.progress]
    assert set(held[5:14]) == {"b"} and set(held[14:25]) == {"a"}


@pytest.mark.parametrize("idle", [None, 10])
@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("scenario", ["live", "b lags by 30 seconds", "backfill"])
def test_a_row_of_the_year_9999_is_dropped_and_moves_nothing(
    scenario: str, name: str, idle: int | None
) -> None:
    batches = backfill() if scenario == "backfill" else live(45, lag=30 if "lags" in scenario else 0)
    wanted, undisturbed = joined(batches), run(batches, idle)
    for number in (0, 3):
        batches[number] = {**batches[number], name: pa.concat_tables([BAD_ROW, batches[number][name]])}
    done = run(batches, idle)
    assert wanted.total() > 100 and done.results == wanted
    assert done.dropped("numRowsAhead") == {name: 2}
    marks = [[section["watermark"] for section in each.progress] for each in (done, undisturbed)]
    assert marks[0] == marks[1]


def test_without_a_limit_the_row_takes_the_watermark_along() -> None:
    """What `ahead` prevents: everything after the row is late."""
    batches = live(45, lag=30)
    batches[3]["b"] = pa.concat_tables([BAD_ROW, batches[3]["b"]])
    done = run(batches, ahead=None)
    assert done.results.total() < joined(batches).total() / 2
    assert done.dropped("numRowsDroppedByWatermark")["b"] > 100


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_watermark_that_a_wrong_clock_has_moved_is_reset(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A query without a limit takes the row in; started again with one, it forgets it."""
    batches, idle = live(45), "b" if name == "a" else "a"
    batches[3][name] = pa.concat_tables([BAD_ROW, batches[3][name]])
    for number in range(4, 20):
        batches[number][idle] = SCHEMA.empty_table()
    query = make_query(idle=5, ahead=None)
    for batch in batches[:20]:
        query.process(batch)
    assert query.manifest.watermark == YEAR_9999
    again = make_query(idle=5)
    vars(again._memory).update(vars(query._memory))
    results: Results = Counter()
    with caplog.at_level(logging.WARNING, "weir"):
        for number, batch in enumerate(batches[20:], 20):
            found = again.process(batch)
            if number > 20:
                results.update(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))
    assert [record.getMessage() for record in caplog.records] == [
        f"the newest times of '{name}' lie so far ahead that they are forgotten",
        "the watermark lies so far ahead that it is forgotten",
    ]
    # Rows since the restart meet each other; of those before, a part was lost.
    assert results >= joined(batches[21:]) and results <= joined(batches)
    assert again.manifest.watermark == min(again.manifest.newest.values())


def test_streams_may_be_in_the_future_together() -> None:
    """A simulation of next year: only before any stream has a time does the wall clock decide."""
    batches = live(20)
    done = run(batches, clock=count(START - 7200 * SECOND, SECOND))
    assert not done.results and done.dropped("numRowsAhead")["a"] == 20 * PER_SECOND
    done = run(batches, ahead=3 * 3600, clock=count(START - 7200 * SECOND, SECOND))
    assert done.results == joined(batches)


def test_times_without_a_zone_are_local_times() -> None:
    """Live rows in Tokyo, nine hours after UTC: by UTC all of them would be ahead."""
    batches, now = live(20), START - 9 * 3600 * SECOND
    done = run(batches, clock=count(now, SECOND), zone="Asia/Tokyo")
    assert done.results == joined(batches) and done.dropped("numRowsAhead") == {}
    assert run(batches, clock=count(now, SECOND)).dropped("numRowsAhead")["a"] == 20 * PER_SECOND


def test_times_with_and_without_a_zone_are_not_mixed() -> None:
    zoned = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})
    asked: dict[str, Any] = {"on": "a.k = b.k", "within": "1 minute", "select": "a.k"}
    weir.join(a=zoned, b=SCHEMA, **asked)
    with pytest.raises(weir.QueryError, match=r"stream 'a' are TIMESTAMP and those of 'b' TIMESTAMP_NTZ"):
        weir.join(a=zoned, b=SCHEMA, **asked, session={"timeZone": "America/New_York"})


def test_a_wall_clock_that_goes_back_drops_no_row() -> None:
    """After a start with a clock of the past, the rows that have arrived tell a later time."""
    batches = live(20)
    for number in range(5, 20):
        batches[number]["b"] = SCHEMA.empty_table()
    clock = iter([START + n * SECOND - (n >= 8) * 86_400 * SECOND for n in range(20)])
    done = run(batches, clock=clock)
    assert done.results == joined(batches) and done.dropped("numRowsAhead") == {}


def test_a_stream_that_brings_only_unusable_rows_is_silent() -> None:
    batches: Batches = [{**batch, "b": BAD_ROW} if n % 2 else batch for n, batch in enumerate(live(30))]
    for number in range(6, 30, 2):
        batches[number]["b"] = table([None], [1], [0])
    done = run(batches, idle=10)
    assert done.progress[-1]["idle"] == ["b"]
    assert done.progress[-1]["watermarkHeldBy"] == {"stream": "a", "since": TODAY + 29 * SECOND}


def test_a_clock_that_was_set_back_does_not_keep_a_stream_from_being_idle() -> None:
    names, last = ("a", "b"), {"a": 500, "b": 500}
    last = update_last_arrivals(names, last, 100, {"a"})
    assert last == {"a": 100, "b": 100}
    assert find_idle_streams(names, last, 120, 20) == ("a", "b")


def test_a_silent_stream_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    batches = [{**batch, "b": SCHEMA.empty_table()} for batch in live(20)]
    with caplog.at_level(logging.WARNING, "weir"):
        done = run(batches, clock=count(TODAY, 60 * SECOND))
    (warning,) = (record.getMessage() for record in caplog.records)
    assert warning.startswith(
        "stream 'b' has brought no row with a usable time since 2027-01-15 08:00:00 UTC"
    )
    assert [section["watermarkHeldBy"] for section in done.progress] == 20 * [{"stream": "b", "since": TODAY}]


def test_rows_ahead_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    batches = [{**batch, "b": pa.concat_tables([BAD_ROW, batch["b"]])} for batch in live(5)]
    with caplog.at_level(logging.WARNING, "weir"):
        run(batches)
    (warning,) = (record.getMessage() for record in caplog.records)
    assert warning.startswith("stream 'b' has brought 1 row from after 2027-01-15 09:00:00 UTC; such rows")


def test_streams_that_speak_are_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "weir"):
        run(live(20, lag=30), clock=count(TODAY, 60 * SECOND))
    assert not caplog.records
