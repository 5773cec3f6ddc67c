"""Join several streams by a chain of Spark's own stream-stream joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.bench.session import HDFS_BACKED, ROCKSDB


@dataclass(frozen=True, slots=True)
class StateForm:
    """Where Spark keeps a join's state, and in which layout."""

    name: str
    provider: str
    version: int

    @property
    def settings(self) -> dict[str, str]:
        """What a session needs to be told before the query starts."""
        return {
            "spark.sql.streaming.stateStore.providerClass": self.provider,
            "spark.sql.streaming.join.stateFormatVersion": str(self.version),
        }


# Formats 3 and 4 exist on RocksDB alone; 1 is deprecated.
FORMS = (
    StateForm("in memory, format 2", HDFS_BACKED, 2),
    StateForm("RocksDB, format 2", ROCKSDB, 2),
    StateForm("RocksDB, format 3", ROCKSDB, 3),
    StateForm("RocksDB, format 4", ROCKSDB, 4),
)


def chain_joins(streams: Mapping[str, Any], window_seconds: int) -> Any:
    """The three-way join in Spark's terms: times less than the window apart, pair by pair, and equal keys."""
    a, b, c = (
        streams[name]
        .withWatermark("ts", "0 seconds")
        .selectExpr(*(f"{column} AS {name}{column}" for column in ("ts", "k", "x")))
        for name in ("a", "b", "c")
    )
    # Spark allows one event-time column in the second join: the other goes by a number and back.
    pairs = a.sparkSession.sql(
        "SELECT ak, ats, ax, bx, timestamp_micros(unix_micros(bts)) AS bts FROM {a} JOIN {b} "
        f"ON ak = bk AND {_near('ats', 'bts', window_seconds)}",
        a=a,
        b=b,
    )
    near = f"{_near('ats', 'cts', window_seconds)} AND {_near('bts', 'cts', window_seconds)}"
    return a.sparkSession.sql(
        f"SELECT ak AS k, ax, bx, cx FROM {{pairs}} JOIN {{c}} ON ak = ck AND {near}", pairs=pairs, c=c
    )


def chain_filtered_joins(streams: Mapping[str, Any], window_seconds: int, predicate: str, column: str) -> Any:
    """A chain of streams crossed one by one, with a predicate between neighbours as a filter over the pairs.

    Spark refuses a join of streams without an equality, so it gets one of a key that is always equal.
    """
    (first, joined), *others = (
        (
            name,
            frame.withWatermark("ts", "0 seconds").selectExpr(
                f"ts AS {name}ts", f"k AS {name}k", f"{column} AS {name}v"
            ),
        )
        for name, frame in streams.items()
    )
    times, last = [f"{first}ts"], first
    for name, other in others:
        near = " AND ".join(_near(time, f"{name}ts", window_seconds) for time in times)
        # Spark allows one event-time column in the next join: the other goes by a number and back.
        kept = f"{first}k, {', '.join(times)}, timestamp_micros(unix_micros({name}ts)) AS {name}ts, {name}v"
        joined = joined.sparkSession.sql(
            f"SELECT {kept} FROM (SELECT * FROM {{joined}} JOIN {{other}} ON {first}k = {name}k AND {near}) "
            f"WHERE {predicate}({last}v, {name}v)",
            joined=joined,
            other=other,
        )
        times, last = [*times, f"{name}ts"], name
    return joined.select(*times)


def start(form: StateForm, streams: Mapping[str, Any], folder: Path, window_seconds: int) -> Any:
    """Start Spark's query without a sink."""
    spark = next(iter(streams.values())).sparkSession
    for name, value in form.settings.items():
        spark.conf.set(name, value)
    writer = chain_joins(streams, window_seconds).writeStream.format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def _near(left: str, right: str, seconds: int) -> str:
    width = f"INTERVAL {seconds} SECONDS"
    return f"{left} > {right} - {width} AND {left} < {right} + {width}"
