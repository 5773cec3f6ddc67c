"""`weir-lab bench soak`: minutes of event time in one-second batches; nothing may grow."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import weir
from weir_lab.bench.feed import Feed, streams
from weir_lab.bench.figure import Figure, ratio
from weir_lab.bench.processes import list_descendants, list_python_workers
from weir_lab.bench.session import session
from weir_lab.csv import write_records

BATCHES, QUICK_BATCHES = 600, 60
_ROWS_PER_SECOND = 1_000
_GROWTH = 1.15
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One batch, and what the processes and folders held when it was seen; memory in megabytes."""

    batch: int
    seconds: float
    results: int
    state_rows: int
    slices: int
    files: int
    driver_mb: float
    jvm_mb: float
    workers_mb: float


def run(quick: bool = False, csv_file: Path | None = None) -> list[Figure]:
    """Run the query over all batches, as fast as it goes."""
    batches = QUICK_BATCHES if quick else BATCHES
    # The heap is in memory from the start, so that what grows is not just Java growing into it.
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch",
        "spark.sql.streaming.minBatchesToRetain": "5" if quick else "50",
        "spark.sql.streaming.numRecentProgressUpdates": str(batches),
    }
    spark = session("weir-lab bench soak", **settings)
    try:
        samples = _run(spark, batches)
    finally:
        spark.stop()
    if csv_file is not None:
        write_records(csv_file, samples)
    return figures(samples)


def _run(spark: Any, batches: int) -> list[Sample]:
    feed = Feed(_ROWS_PER_SECOND, _ROWS_PER_SECOND)
    with tempfile.TemporaryDirectory(prefix="weir-soak-") as folder:
        source, checkpoint = Path(folder) / "in", Path(folder) / "checkpoint"
        feed.write(source, range(batches))
        joined: Any = weir.join(
            streams=streams(spark, source, files_per_trigger=1),
            on="a.k = b.k AND b.k = c.k",
            within="10 seconds",
            select="a.k, a.x AS ax, b.x AS bx, c.x AS cx",
        )
        writer = joined.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        return _watch(writer.trigger(availableNow=True).start(), checkpoint / "weir", batches)


def _watch(query: Any, folder: Path, batches: int) -> list[Sample]:
    """A sample per batch, taken within a moment of its end."""
    samples: dict[int, Sample] = {}
    active = True
    while active:
        active = query.isActive
        fresh = [p for p in query.recentProgress if p["weir"] and p["batchId"] not in samples]
        held = _held(folder) if fresh else {}
        for progress in fresh:
            samples[progress["batchId"]] = _sample(progress, held)
        if fresh and max(samples) % 20 < len(fresh):
            print(f"batch {max(samples) + 1} of {batches}: {held}", file=sys.stderr, flush=True)
        time.sleep(0.1)
    query.awaitTermination()
    if len(samples) != batches:
        raise RuntimeError(f"{batches} batches were to come, {len(samples)} came")
    return [samples[number] for number in sorted(samples)]


def _sample(progress: Any, held: dict[str, Any]) -> Sample:
    ours = progress["weir"]
    nodes = ours["state"].values()
    return Sample(
        batch=progress["batchId"],
        seconds=progress["durationMs"]["triggerExecution"] / 1000,
        results=ours["numOutputRows"],
        state_rows=sum(node["numRowsTotal"] for node in nodes),
        slices=sum(node["numSlices"] for node in nodes),
        **held,
    )


def _held(folder: Path) -> dict[str, Any]:
    """Files in weir's part of the checkpoint; the memory of the driver, its Java and its Python workers."""
    family = list_descendants(os.getpid())
    java = [process for process in family if process.command.split(" ")[0].endswith("java")]
    driver = Path("/proc/self/statm").read_text().split()[1]
    return {
        "files": sum(len(files) for _, _, files in os.walk(folder)),
        "driver_mb": round(int(driver) * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE, 1),
        "jvm_mb": round(sum(process.memory() for process in java) / _MEGABYTE, 1),
        "workers_mb": round(sum(p.memory() for p in list_python_workers(family)) / _MEGABYTE, 1),
    }


def figures(samples: Sequence[Sample]) -> list[Figure]:
    """The last quarter against the second, and the second half against the first."""
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    early, late = samples[: len(samples) // 2], samples[len(samples) // 2 :]
    note = f"{len(samples)} batches, {median(s.seconds for s in last):.3f} s each at the end"

    def grown(name: str, of: Callable[[Sample], float], note: str = "") -> Figure:
        # Quarters are not paired batch by batch: each batch stands against the median of the second quarter.
        usual = median(of(sample) for sample in second)
        ends = [of(sample) for sample in last]
        return ratio(name, ends, [usual] * len(ends), _GROWTH, "at most", note or f"from {usual:,.0f}")

    def bounded(name: str, of: Callable[[Sample], int]) -> Figure:
        before, after = max(map(of, early)), max(map(of, late))
        return ratio(name, [after], [before], 1.1, "at most", f"{after:,} at most")

    return [
        grown("time per batch, last quarter / second quarter", lambda s: s.seconds, note),
        bounded("slices, second half / first half", lambda s: s.slices),
        bounded("files, second half / first half", lambda s: s.files),
        grown("driver's memory, last quarter / second quarter (MB)", lambda s: s.driver_mb),
        grown("Java's memory, last quarter / second quarter (MB)", lambda s: s.jvm_mb),
        grown("Python workers' memory, last quarter / second quarter (MB)", lambda s: s.workers_mb),
    ]
