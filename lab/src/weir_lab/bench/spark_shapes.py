"""Shapes of data on Spark in twenty micro-batches, beside DuckDB with as many threads and the local engine.

Spark takes some tenths of a second for a batch without rows. Such batches stand between those with rows, and
what they take is subtracted: the rest is for the rows, and `weir-lab bench batches` measures the other part.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from weir_lab.bench.feed import START, file_of, streams
from weir_lab.bench.figure import Figure, ratio, tell, time_in_turns
from weir_lab.bench.lanes import Turn, describe_phases, read_turn
from weir_lab.bench.session import CORES, session
from weir_lab.bench.shape_growth import check_equal, describe_growth, double
from weir_lab.bench.shape_peer import Peer, compare, compare_state, join_locally
from weir_lab.bench.shape_tables import GROWING, Shape, make_dense, make_text_keys
from weir_lab.bench.shapes import BATCHES, PATIENCE, list_shapes, rows_per_stream

T = TypeVar("T")
_SPARK_TO_LOCAL = 2.0
_COMPUTED_TO_PLAIN = 1.2
_MICROSECONDS_UTC = pa.timestamp("us", tz="UTC")
# Below a millisecond a batch, what is left after subtracting is noise.
_LEAST = 0.001 * BATCHES
# A new query warms up with so many empty batches; from then on every third batch is empty.
_WARM = 2
_EMPTY = [True] * _WARM + [number % 3 == 0 for number in range(BATCHES * 3 // 2)]


def measure(data: Path | None, quick: bool) -> list[Figure]:
    """Every figure of Spark, in this process; each is told on stderr as it is done."""
    pa.set_cpu_count(1)  # as in the process where the local engine is compared with DuckDB
    spark = session("weir-lab bench shapes")
    repeats = 1 if quick else 3
    try:
        figures = [tell(measure_shape(spark, shape, repeats)) for shape in list_shapes(data, quick)]
        figures.append(tell([measure_state(spark, make_dense(rows_per_stream(quick)))]))
        figures.append(tell([measure_computed_keys(spark, make_text_keys(rows_per_stream(quick)), repeats)]))
        sizes = double(30_000, 120_000) if quick else double(120_000, 1_920_000)
        figures += [tell([measure_growth(spark, make, sizes)]) for make in GROWING]
    finally:
        spark.stop()
    return list(chain.from_iterable(figures))


def measure_shape(spark: Any, shape: Shape, repeats: int) -> list[Figure]:
    """Spark against DuckDB and against the local engine, after all of them have found the same results."""
    peer, parts = Peer(shape, threads=CORES), shape.batches(BATCHES)
    turns: list[Turn] = []

    def time_on_spark() -> float:
        turns[:] = job.run("noop")
        peer.check_number("on Spark", count_results(turns))
        return net_seconds(turns)

    time_local = partial(peer.time_local, parts)
    with write_job(spark, shape) as job:
        _warm_up(job, peer)
        time_local()
        runs: dict[str, Callable[[], float]] = {
            "spark": time_on_spark,
            "duckdb": peer.time,
            "local": time_local,
        }
        seconds = time_in_turns(runs, repeats, PATIENCE, warm=0)
    return _compare(shape, peer, seconds, turns)


def _warm_up(job: Job, peer: Peer) -> None:
    """Run once, and compare all results where they are few."""
    turns = job.run("parquet" if peer.compares_rows else "noop")
    peer.check_number("on Spark", count_results(turns))
    if peer.compares_rows:
        peer.check("on Spark", job.read_results())


def _compare(
    shape: Shape, peer: Peer, seconds: Mapping[str, Sequence[float]], turns: Sequence[Turn]
) -> list[Figure]:
    spark, local = seconds["spark"], seconds["local"]
    empty = f"{empty_seconds(turns):.3f} s a batch without rows not counted"
    note = f"{shape.rows:,} rows, {peer.results:,} results; {empty}"
    phases = describe_phases(with_rows(turns)[1:])
    times = f"{median(spark):.3f} s, local {median(local):.3f} s; a batch in ms: {phases}"
    name = f"{shape.name}: Spark / local, {BATCHES} batches"
    return [
        compare(f"Spark, {BATCHES} batches", shape, spark, seconds["duckdb"], note),
        ratio(name, spark, local, _SPARK_TO_LOCAL, "at most", times),
    ]


def measure_state(spark: Any, shape: Shape) -> Figure:
    """What the state keeps after each batch."""
    parts = shape.batches(BATCHES)
    with write_job(spark, shape) as job:
        kept = [turn.state_rows or 0 for turn in with_rows(job.run("noop"))]
        watermarks = [batch["weir"]["watermark"] for batch in with_rows(job.progress)]
    needed = [shape.count_in_windows(parts[: n + 1], watermark) for n, watermark in enumerate(watermarks)]
    return compare_state("Spark", shape, kept, needed)


def measure_computed_keys(spark: Any, shape: Shape, repeats: int) -> Figure:
    """Keys that Spark computes before the join, lower(k), against the columns themselves."""
    computed = replace(shape, on=re.sub(r"\w+\.k", r"lower(\g<0>)", shape.on or ""))
    with write_job(spark, shape) as plain_job, write_job(spark, computed) as computed_job:
        jobs = {"plain": plain_job, "computed": computed_job}
        counts = {name: count_results(job.run("noop")) for name, job in jobs.items()}
        check_equal(counts, f"'{shape.name}', {shape.rows:,} rows")
        runs = {name: lambda job=job: net_seconds(job.run("noop")) for name, job in jobs.items()}
        seconds = time_in_turns(runs, repeats, PATIENCE, warm=0)
    times = ", ".join(f"{name} {median(taken):.3f} s" for name, taken in seconds.items())
    name = f"{shape.name}: Spark, on lower(k) / on k, {BATCHES} batches"
    return ratio(name, seconds["computed"], seconds["plain"], _COMPUTED_TO_PLAIN, "at most", times)


def measure_growth(spark: Any, make: Callable[[int], Shape], sizes: Sequence[int]) -> Figure:
    """The exponent over sizes of all streams together; at every size Spark finds what local finds."""
    rows_each = make(1_000).rows // 1_000
    seconds = {}
    for size in sizes:
        shape = make(size // rows_each)
        with write_job(spark, shape) as job:
            turns = job.run("noop")
        local = join_locally(shape, shape.batches(1)).num_rows
        check_equal({"Spark": count_results(turns), "local": local}, f"'{shape.name}', {shape.rows:,} rows")
        seconds[shape.rows] = [net_seconds(turns)]
    return describe_growth(f"{shape.name}: Spark, {BATCHES} batches", seconds)


def with_rows(batches: Sequence[T]) -> list[T]:
    """The batches that have rows."""
    return [batch for batch, is_empty in zip(batches, _EMPTY, strict=True) if not is_empty]


def empty_seconds(turns: Sequence[Turn]) -> float:
    """What a batch without rows takes, once the query is warm."""
    empty = [turn for turn, is_empty in zip(turns, _EMPTY, strict=True) if is_empty]
    return median(_working(turn) for turn in empty[_WARM:])


def net_seconds(turns: Sequence[Turn]) -> float:
    """What all rows take beyond empty batches; the first batch with rows counts as the mean of the others."""
    measured = with_rows(turns)[1:]
    beyond = sum(_working(turn) for turn in measured) - len(measured) * empty_seconds(turns)
    return max(_LEAST, beyond * BATCHES / len(measured))


def _working(turn: Turn) -> float:
    """The seconds of a batch without finding and noting its files, which depend on the disk, not on rows."""
    return turn.phases["spark addBatch"]


def count_results(turns: Sequence[Turn]) -> int:
    """The results of all batches."""
    return sum(turn.results or 0 for turn in turns)


class Job:
    """The files of a shape, and the query that reads them: one file a stream and micro-batch."""

    def __init__(self, spark: Any, shape: Shape, folder: Path) -> None:
        self._spark, self._shape, self._folder = spark, shape, folder
        self.progress: list[Mapping[str, Any]] = []
        nothing = {name: table.slice(0, 0) for name, table in shape.tables.items()}
        parts = iter(shape.batches(BATCHES))
        for number, is_empty in enumerate(_EMPTY):
            write_files(folder / "in", nothing if is_empty else next(parts), number)

    def run(self, sink: Literal["noop", "parquet"]) -> list[Turn]:
        """Run a new query over all files, one turn a batch."""
        for name in ("checkpoint", "out"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        writer = self._shape.join(
            read_streams(self._spark, self._folder / "in", self._shape)
        ).writeStream.format(sink)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = writer.start(str(self._folder / "out"))
        try:
            query.processAllAvailable()
            self.progress = [*{p["batchId"]: p for p in query.recentProgress}.values()]
        finally:
            query.stop()
        if len(self.progress) != len(_EMPTY):
            raise RuntimeError(f"'{self._shape.name}' ran in {len(self.progress)} batches, not {len(_EMPTY)}")
        return [read_turn(progress) for progress in self.progress]

    def read_results(self) -> pa.Table:
        """What the last run with files as its sink has written."""
        return pq.read_table(self._folder / "out")


@contextmanager
def write_job(spark: Any, shape: Shape) -> Iterator[Job]:
    """A job whose files are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        yield Job(spark, shape, Path(folder))


def read_streams(spark: Any, folder: Path, shape: Shape) -> dict[str, Any]:
    """The streams of a shape whose first files `write_files` has written; a batch takes one of each."""
    frames: dict[str, Any] = {}
    for name in shape.tables:
        schema = spark.read.parquet(str(folder / name / file_of(0))).schema
        frames |= streams(spark, folder, 1, schema, [name])
    return frames


def write_files(folder: Path, part: Mapping[str, pa.Table], number: int) -> None:
    """Write the rows of a batch, one file a stream."""
    for name, table in part.items():
        file = folder / name / file_of(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        # Spark reads times without a zone as another type.
        pq.write_table(table.set_column(0, "ts", table["ts"].cast(_MICROSECONDS_UTC)), file)
        # Spark takes files in the order of their times.
        os.utime(file, (START + number, START + number))
