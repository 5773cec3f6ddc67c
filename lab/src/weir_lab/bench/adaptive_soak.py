"""`weir-lab bench soak --hours 6`: a query that adapts its plan to rates that keep changing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import weir
from weir_lab.bench.feed import START
from weir_lab.bench.figure import Figure, ratio
from weir_lab.bench.processes import list_descendants
from weir_lab.bench.session import session
from weir_lab.csv import write_records

STREAMS = ("a", "b", "c", "d")
SPAN = 10
PER_HOUR = 3600 // SPAN
# After so many batches another stream is the slow one, and other streams match less often.
STRETCH = 20
CHANGES = 50
_SLOW, _FAST = 20, 50
_KEYS = 80
# Values of two streams match if they are less than 0.5 apart: often within the first range, else seldom.
_NARROW, _WIDE = 1.0, 1000.0
_SCHEMA = "ts timestamp, k bigint, x double"
_TIME = pa.timestamp("us", tz="UTC")
_ON = "a.k = b.k AND b.k = c.k AND c.k = d.k AND abs(a.x - b.x) <= 0.5 AND abs(c.x - d.x) <= 0.5"
_WITHIN = "30 seconds"
_SELECT = "a.k, a.x AS ax, b.x AS bx, c.x AS cx, d.x AS dx"
_GROWTH = 1.15
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One batch: what it took and gave, what the exact join gives, its plan, and how true its statistics are.

    `error` is how far the worst of the estimated rates is from the one that was fed, as a share.
    """

    batch: int
    seconds: float
    results: int
    exact: int
    state_rows: int
    memory_mb: float
    plan: str
    error: float

    def describe(self) -> str:
        """The batch in a line."""
        plan = self.plan.partition(" {")[0]
        return (
            f"{self.seconds:.2f} s, {self.results:,} results of {self.exact:,}, {self.state_rows:,} rows of "
            f"state, {self.memory_mb:g} MB, plan {plan}"
        )


def rate(stream: str, batch: int) -> int:
    """Rows a second: one stream in turn is slow.

    >>> [rate("b", batch) for batch in (0, STRETCH, 2 * STRETCH)]
    [50, 20, 50]
    """
    return _SLOW if STREAMS[batch // STRETCH % len(STREAMS)] == stream else _FAST


def rows(stream: str, batch: int) -> pa.Table:
    """What a stream brings in the ten seconds of a batch; always the same."""
    count = rate(stream, batch) * SPAN
    rng = np.random.default_rng((STREAMS.index(stream), batch))
    times = (START + batch * SPAN) * 1_000_000 + np.arange(count) * SPAN * 1_000_000 // count
    values = _spread(stream, batch) * rng.random(count)
    return pa.table({"ts": pa.array(times).cast(_TIME), "k": rng.integers(0, _KEYS, count), "x": values})


def _spread(stream: str, batch: int) -> float:
    """The range of a stream's values: in turn those of the first two match seldom, and of the others."""
    first = stream in STREAMS[:2]
    return _WIDE if first == (batch // STRETCH % 2 == 0) else _NARROW


def run(hours: float, local: bool, csv_file: Path | None = None) -> list[Figure]:
    """Run so many hours of event time, as fast as it goes, beside the same join with a plan that stays."""
    batches = round(hours * PER_HOUR)
    played = _in_process(batches) if local else _on_spark(batches)
    samples = []
    for sample in played:
        samples.append(sample)
        if sample.batch % 50 == 49:
            print(f"batch {sample.batch + 1} of {batches}: {sample.describe()}", file=sys.stderr, flush=True)
    if csv_file is not None:
        write_records(csv_file, samples)
    return figures(samples)


def _asked() -> dict[str, Any]:
    # A plan that fits its CPU is never left; without a limit the best one by the model runs.
    budget = weir.Budget(memory="1g")
    return {"on": _ON, "within": _WITHIN, "select": _SELECT, "budget": budget, "adapt": True}


def _in_process(batches: int) -> Iterator[Sample]:
    schemas = {name: rows(name, 0).schema for name in STREAMS}
    joined: Any = weir.join(streams=schemas, **_asked())
    query, exact = joined.start(), _Exact()
    for batch in range(batches):
        fed = {name: rows(name, batch) for name in STREAMS}
        started = perf_counter()
        results = query.process(fed)
        took = perf_counter() - started
        ours = query.lastProgress["weir"]
        yield Sample(
            batch,
            took,
            results.num_rows,
            exact.after(fed),
            sum(node["numRowsTotal"] for node in ours["state"].values()),
            _resident([os.getpid()]),
            _plan(ours["decision"]),
            _error(query.statistics.rates, batch),
        )


def _on_spark(batches: int) -> Iterator[Sample]:
    # The heap is in memory from the start, so that what grows is not just Java growing into it.
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch",
        "spark.sql.streaming.minBatchesToRetain": "5",
    }
    spark = session("weir-lab bench soak", **settings)
    try:
        with TemporaryDirectory(prefix="weir-soak-") as folder:
            yield from _watched(spark, Path(folder), batches)
    finally:
        spark.stop()


def _watched(spark: Any, folder: Path, batches: int) -> Iterator[Sample]:
    exact = _Exact()
    for batch in range(batches):
        for name in STREAMS:
            file = folder / "in" / name / f"batch-{batch:06d}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows(name, batch), file)
            # Spark takes files in the order of their times.
            os.utime(file, (START + batch, START + batch))
    frames = {
        name: spark.readStream.schema(_SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "in" / name))
        for name in STREAMS
    }
    joined: Any = weir.join(streams=frames, partitions=2, **_asked())
    writer = joined.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    seen, active = -1, True
    while active:
        active = query.isActive
        fresh = [p for p in query.recentProgress if p["weir"] and p["batchId"] > seen]
        for progress in fresh:
            seen, ours = progress["batchId"], progress["weir"]
            yield Sample(
                seen,
                progress["durationMs"]["triggerExecution"] / 1000,
                ours["numOutputRows"],
                exact.after({name: rows(name, seen) for name in STREAMS}),
                sum(node["numRowsTotal"] for node in ours["state"].values()),
                _resident([os.getpid(), *(process.pid for process in list_descendants(os.getpid()))]),
                _plan(ours["decision"]),
                _error(ours["statistics"]["rates"], seen),
            )
        sleep(0.2)
    query.awaitTermination()


class _Exact:
    """The same join in this process, with one plan for all time."""

    def __init__(self) -> None:
        schemas = {name: rows(name, 0).schema for name in STREAMS}
        joined: Any = weir.join(streams=schemas, on=_ON, within=_WITHIN, select=_SELECT, plan="mjoin")
        self._query = joined.start()

    def after(self, fed: dict[str, pa.Table]) -> int:
        """How many results a batch has."""
        return int(self._query.process(fed).num_rows)


def _plan(decision: dict[str, Any]) -> str:
    """The plan with its orders."""
    return f"{decision['plan']} {decision['orders']}"


def _error(rates: dict[str, float], batch: int) -> float:
    errors = (abs(rates.get(name, 0.0) / rate(name, batch) - 1) for name in STREAMS)
    return max(errors)


def _resident(pids: Sequence[int]) -> float:
    """The memory of some processes in megabytes; one that has ended has none."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return round(pages * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE, 1)


def count_changes(samples: Sequence[Sample]) -> int:
    """How often another plan than before answered."""
    return sum(sample.plan != other.plan for sample, other in pairwise(samples))


def figures(samples: Sequence[Sample]) -> list[Figure]:
    """The last quarter against the second; plan changes, and results, against what they should be."""
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    results, exact = sum(sample.results for sample in samples), sum(sample.exact for sample in samples)
    wrong = sum(sample.results != sample.exact for sample in samples)
    wanted = max(1, round(CHANGES * len(samples) / (6 * PER_HOUR)))

    def grown(name: str, of: Callable[[Sample], float], among: Callable[[Sample], bool], note: str) -> Figure:
        usual = median(of(sample) for sample in second if among(sample))
        ends = [of(sample) for sample in last if among(sample)]
        return ratio(name, ends, [usual] * len(ends), _GROWTH, "at most", note.format(usual))

    def settled(sample: Sample) -> bool:
        # Averages follow a change within some batches.
        return sample.batch % STRETCH >= STRETCH // 2

    def anyone(_: Sample) -> bool:
        return True

    took = f"{len(samples)} batches, {median(sample.seconds for sample in last):.3f} s each at the end"
    return [
        grown("time per batch, last quarter / second quarter", lambda s: s.seconds, anyone, took),
        grown("memory, last quarter / second quarter (MB)", lambda s: s.memory_mb, anyone, "from {:,.0f}"),
        grown("state rows, last quarter / second quarter", lambda s: s.state_rows, anyone, "from {:,.0f}"),
        grown(
            "estimated rates against those fed, last quarter / second quarter",
            lambda s: 1 + s.error,
            settled,
            "from {:.3f}",
        ),
        ratio(
            "plan changes / those wanted",
            [count_changes(samples)],
            [wanted],
            1.0,
            "at least",
            f"{count_changes(samples)} changes",
        ),
        ratio(
            "batches with other results than the exact join (1 = none)",
            [1.0 + wrong],
            [1.0],
            1.0,
            "at most",
            f"{results:,} results, {exact:,} exact",
        ),
    ]
