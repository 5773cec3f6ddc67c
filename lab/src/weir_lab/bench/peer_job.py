"""One job of `weir-lab bench peers` in a process of its own: weir, Spark's chained joins, or DuckDB.

It imports no more than its engine needs, since the time to its first result counts. Its description is a JSON
file; it leaves its marks in another one: moments, each with the number of results that were out by then.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

_STREAMS = ("a", "b", "c")
_SCHEMA = "ts timestamp, k bigint, x double"
THREADS = 2

Marks = list[tuple[float, int]]


def main(file: Path) -> None:
    """Run the job that a file describes."""
    job = json.loads(file.read_text())
    run = run_duckdb if job["engine"] == "duckdb" else run_on_spark
    Path(job["marks"]).write_text(json.dumps(run(job)))


def run_on_spark(job: Mapping[str, Any]) -> Marks:
    """All files in batches back to back; a mark for each batch."""
    from weir_lab.bench.session import session

    spark = session("weir-lab bench peers", **{"spark.sql.streaming.numRecentProgressUpdates": "10000"})
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", job["files_per_batch"])
    streams = {name: reader.parquet(f"{job['source']}/{name}") for name in _STREAMS}
    joined = join_with_weir(job, streams) if job["engine"] == "weir" else join_with_spark(job, streams)
    writer = joined.writeStream.format(job["sink"]).option("checkpointLocation", f"{job['out']}-checkpoint")
    query = writer.trigger(availableNow=True).start(job["out"])
    query.awaitTermination()
    return _marks(query.recentProgress)


def join_with_weir(job: Mapping[str, Any], streams: Mapping[str, Any]) -> Any:
    """The query, asked of weir, which syncs nothing to the disk, as its peers do."""
    import weir

    within = f"{job['window_seconds']} seconds"
    return weir.join(streams=streams, on=job["on"], within=within, select=job["select"], durability="process")


def join_with_spark(job: Mapping[str, Any], streams: Mapping[str, Any]) -> Any:
    """The query as a chain of Spark's own joins, with its state in memory, where they are fastest."""
    from weir_lab.bench.spark_joins import FORMS, chain_joins

    for name, value in FORMS[0].settings.items():
        streams["a"].sparkSession.conf.set(name, value)
    return chain_joins(streams, job["window_seconds"])


def _marks(progress: list[Any]) -> Marks:
    # Not before: what it imports is not part of the job.
    from weir_lab.bench.lanes import read_turn

    marks, results = [], 0
    for batch in progress:
        turn = read_turn(batch)
        started = datetime.fromisoformat(batch["timestamp"]).timestamp()
        results += turn.results or 0
        marks.append((started + turn.latency, results))
    return marks


def run_duckdb(job: Mapping[str, Any]) -> Marks:
    """All rows in one batch join; a mark before it and one after it."""
    import duckdb

    connection = duckdb.connect(config={"threads": THREADS})
    statement = batch_join(job["source"], job["select"], job["window_seconds"])
    started, results = time.time(), 0
    if job["sink"] == "parquet":
        Path(job["out"]).mkdir()
        target = f"{job['out']}/results.parquet"
        ((results,),) = connection.execute(f"COPY ({statement}) TO '{target}' (FORMAT parquet)").fetchall()
    else:
        for chunk in connection.sql(statement).to_arrow_reader(1 << 17):
            results += chunk.num_rows
    return [(started, 0), (time.time(), results)]


def batch_join(source: str, select: str, window_seconds: int) -> str:
    """The query in DuckDB's SQL over the files of a feed: times less than the window apart, pair by pair."""
    width = f"INTERVAL {window_seconds} SECONDS"

    def near(left: str, right: str) -> str:
        return f"{left}.ts > {right}.ts - {width} AND {left}.ts < {right}.ts + {width}"

    a, b, c = (f"read_parquet('{source}/{name}/*.parquet') AS {name}" for name in _STREAMS)
    return (
        f"SELECT {select} FROM {a} JOIN {b} ON a.k = b.k AND {near('a', 'b')} "
        f"JOIN {c} ON a.k = c.k AND {near('a', 'c')} AND {near('b', 'c')}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
