"""The job of `weir-lab bench peers` on Flink; it runs in Flink's environment, so it imports nothing of weir.

The query is two interval joins over a parquet file with the rows of all streams in the order of their times.
With a file for each stream, one stream would run ahead, and Flink would search more than the window.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_SAMPLE_SECONDS = 0.2
_STALLED_SECONDS = 120.0
_SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.host": "127.0.0.1",
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "table.local-time-zone": "UTC",
    "metrics.fetcher.update-interval": "200 ms",
}


def main(file: Path) -> None:
    """Run the job that a file describes, and leave its marks in another one."""
    job = json.loads(file.read_text())
    marks = collect_rows(job) if job["sink"] == "parquet" else run_without_sink(job)
    Path(job["marks"]).write_text(json.dumps(marks))


def run_without_sink(job: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Join all rows into a sink that drops them; marks come from the counters of the running job.

    Flink forgets the counters of a job that ends, so the source waits for more files until all is counted.
    """
    port = _free_port()
    environment = _environment(job, {"rest.bind-port": str(port)}, "'source.monitor-interval' = '1 s'")
    environment.execute_sql(
        "CREATE TABLE dropped (k BIGINT, ax DOUBLE, bx DOUBLE, cx DOUBLE) WITH ('connector' = 'blackhole')"
    )
    client = environment.execute_sql(f"INSERT INTO dropped {_query(job)}").get_job_client()
    counters = Counters(f"http://127.0.0.1:{port}/jobs/{client.get_job_id()}")
    marks = list(_sample(counters, job["results"]))
    client.cancel().result()
    return marks


def collect_rows(job: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Join all rows, mark the first result, and write all of them to parquet afterwards."""
    marks: list[tuple[float, int]] = []
    rows: list[tuple[Any, ...]] = []
    with _environment(job, {}).execute_sql(_query(job)).collect() as results:
        for row in results:
            if not rows:
                marks.append((time.time(), 1))
            rows.append(tuple(row))
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [row[i] for row in rows] for i, name in enumerate(("k", "ax", "bx", "cx"))}
    Path(job["out"]).mkdir()
    pq.write_table(pa.table(columns), Path(job["out"]) / "results.parquet")
    return marks


class Counters:
    """What a running job tells of itself over HTTP."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._metrics = ""

    def results(self) -> int:
        """The results that have reached the sink; 0 until its tasks have started."""
        if not self._metrics:
            self._metrics = self._find_metrics()
        if not self._metrics:
            return 0
        return int(sum(metric["sum"] for metric in self._get(self._metrics)))

    def _find_metrics(self) -> str:
        sink = self._get("")["vertices"][-1]["id"]
        metrics = f"/vertices/{sink}/subtasks/metrics"
        names = [metric["id"] for metric in self._get(metrics)]
        counted = [name for name in names if name.endswith("Writer.numRecordsIn")]
        return f"{metrics}?get={counted[0]}" if counted else ""

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._address + path, timeout=_STALLED_SECONDS) as answer:
            return json.load(answer)


def _sample(counters: Counters, wanted: int) -> Iterator[tuple[float, int]]:
    """Marks until all results are out, or until no more have come for long."""
    last, changed = 0, time.time()
    yield changed, 0
    while last != wanted and time.time() - changed < _STALLED_SECONDS:
        time.sleep(_SAMPLE_SECONDS)
        results = counters.results()
        if results != last:
            last, changed = results, time.time()
            yield changed, results


def _environment(job: Mapping[str, Any], settings: Mapping[str, str], *options: str) -> Any:
    """A table environment in streaming mode that knows the streams a, b and c."""
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    configuration = Configuration()
    for name, value in {**_SETTINGS, **settings}.items():
        configuration.set_string(name, value)
    builder = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration)
    environment = TableEnvironment.create(builder.build())
    source = ("'connector' = 'filesystem'", f"'path' = 'file://{job['merged']}'", "'format' = 'parquet'")
    environment.execute_sql(
        "CREATE TABLE merged (stream_id INT, ms BIGINT, k BIGINT, x DOUBLE, "
        "ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts) "
        f"WITH ({', '.join((*source, *options))})"
    )
    for number, name in enumerate(("a", "b", "c")):
        environment.execute_sql(
            f"CREATE VIEW {name} AS SELECT ts, ms, k, x FROM merged WHERE stream_id = {number}"
        )
    return environment


def _query(job: Mapping[str, Any]) -> str:
    """Two interval joins; b and c compare plain numbers, since an interval join takes one pair of times."""
    seconds = job["window_seconds"]
    width = f"INTERVAL '{seconds}' SECOND"
    pairs = (
        "SELECT a.k, a.ts AS ats, a.x AS ax, b.ms AS bms, b.x AS bx FROM a JOIN b "
        f"ON a.k = b.k AND a.ts > b.ts - {width} AND a.ts < b.ts + {width}"
    )
    return (
        f"SELECT pairs.k, ax, bx, c.x AS cx FROM ({pairs}) AS pairs JOIN c "
        f"ON pairs.k = c.k AND ats > c.ts - {width} AND ats < c.ts + {width} "
        f"AND bms > c.ms - {1000 * seconds} AND bms < c.ms + {1000 * seconds}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    main(Path(sys.argv[1]))
