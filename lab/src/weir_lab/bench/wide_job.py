"""One shape of `weir-lab bench wide` in a process of its own: its number of results and its memory."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq

from weir_lab.bench.figure import Figure, summarise, tell, to_json
from weir_lab.bench.peak_memory import GIGABYTE, PeakMemory
from weir_lab.bench.session import session
from weir_lab.bench.shape_growth import check_equal
from weir_lab.bench.shape_tables import Shape
from weir_lab.bench.spark_shapes import read_streams, write_files
from weir_lab.bench.wide_shapes import QUICK_SHAPES, SHAPES, WideShape

# Gigabytes above idle that the local engine may take, or a Python worker and Java (without its heap, which is
# in memory from the start).
_LOCAL_AIMS = {"process": 0.5}
_SPARK_AIMS = {"worker": 0.5, "Java": 0.5}
# Spark's own default; with it, what does not fit into the heap kills its task.
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-Xms1g -XX:+AlwaysPreTouch",
}


def measure(wide: WideShape, way: str) -> list[Figure]:
    """Run the shape once, as one batch."""
    return measure_locally(wide) if way == "chunks" else measure_on_spark(wide, way)


def measure_locally(wide: WideShape) -> list[Figure]:
    """Take the results of the local engine chunk by chunk."""
    query = wide.shape.join(wide.shape.tables).start()
    started, results = perf_counter(), 0
    with PeakMemory() as memory:
        for chunk in query.chunks(wide.shape.tables):
            results += chunk.num_rows
    return _figures(wide, "chunks", {"counted": results}, perf_counter() - started, memory)


def measure_on_spark(wide: WideShape, way: str) -> list[Figure]:
    """Run the shape on Spark with one of `WAYS`; a small query before it starts the workers."""
    spark = session("weir-lab bench wide", **_SETTINGS)
    small = QUICK_SHAPES["hot"]().shape
    try:
        with tempfile.TemporaryDirectory(prefix="weir-wide-") as folder:
            _run(spark, small, Path(folder) / "small", way)
            started = perf_counter()
            with PeakMemory() as memory:
                counted = _run(spark, wide.shape, Path(folder) / "wide", way)
            seconds = perf_counter() - started
    finally:
        spark.stop()
    return _figures(wide, way, counted, seconds, memory)


def _run(spark: Any, shape: Shape, folder: Path, way: str) -> dict[str, int]:
    """The results that weir counts and those that came, of all rows in one batch."""
    write_files(folder / "in", shape.tables, 0)
    writer = shape.join(read_streams(spark, folder / "in", shape)).writeStream
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query, count = WAYS[way](writer, folder / "out")
    query.awaitTermination()
    (progress,) = {p["batchId"]: p for p in query.recentProgress}.values()
    return {"counted by weir": progress["weir"]["numOutputRows"], "came": count()}


_Started = tuple[Any, Callable[[], int]]


def _count(writer: Any, out: Path) -> _Started:
    query = writer.format("count").start()
    return query, lambda: sum(p["weir"]["numOutputRows"] for p in query.recentProgress)


def _write_parquet(writer: Any, out: Path) -> _Started:
    query = writer.format("parquet").start(str(out))
    return query, lambda: sum(pq.read_metadata(file).num_rows for file in out.glob("part-*"))


def _hand_over(writer: Any, out: Path) -> _Started:
    """Hand the results to Spark as a DataFrame, all columns of which it reads."""
    came: list[int] = []
    query = writer.foreachBatch(lambda results, batch: came.append(results.count())).start()
    return query, lambda: sum(came)


# How results leave Spark's workers.
WAYS: Mapping[str, Callable[[Any, Path], _Started]] = {
    "count": _count,
    "parquet": _write_parquet,
    "foreachBatch": _hand_over,
}


def _figures(
    wide: WideShape, way: str, counted: Mapping[str, int], seconds: float, memory: PeakMemory
) -> list[Figure]:
    """Refuse an inexact number of results; tell the memory of this process, or of Spark's."""
    name = f"{wide.shape.name}, {way}"
    check_equal({**counted, "exact": wide.results}, name)
    total = f"all processes {memory.above_idle['all'] / GIGABYTE:.2f} GB"
    held = [
        summarise(
            f"{name}: {part}, GB above idle",
            [memory.above_idle[part] / GIGABYTE],
            aim,
            "at most",
            f"idle {memory.idle[part] / GIGABYTE:.2f} GB; {total}",
        )
        for part, aim in (_LOCAL_AIMS if way == "chunks" else _SPARK_AIMS).items()
    ]
    note = f"{wide.results:,} results in {seconds:.0f} s"
    return [summarise(f"{name}: results / exact number", [1.0], 1.0, "at least", note), *held]


if __name__ == "__main__":
    chosen = QUICK_SHAPES if "--quick" in sys.argv else SHAPES
    print(to_json(tell(measure(chosen[sys.argv[1]](), sys.argv[2]))))
