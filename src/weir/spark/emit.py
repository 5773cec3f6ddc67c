"""Emit a batch's results: publish the files that tasks wrote, or hand the sink a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.kernel.output import result_schema
from weir.runtime.micro_batch import Batch
from weir.runtime.partition_batch import Assignment, TaskReport
from weir.spark.filesystem import Folder
from weir.spark.hop_shuffle import moves, ring, ring_counts
from weir.spark.job import Job
from weir.spark.rebalance import placement_of
from weir.spark.sinks import FrameSink, Sink
from weir.spark.task import REPORT, ProbeTask, ResultFiles, read_counts
from weir.spark.vacuum import SWEEP_EVERY
from weir.stats.batch_counts import BatchCounts


class Emission:
    """Hands the results of each batch to the sink of a query."""

    def __init__(self, folder: Folder, job: Job, sink: Sink) -> None:
        self._folder, self._sink = folder, sink
        self._schema = from_arrow_schema(result_schema(job.physical.query), prefer_timestamp_ntz=True)

    @property
    def result_files(self) -> ResultFiles | None:
        """Where workers write results; None if the sink takes a DataFrame."""
        if isinstance(self._sink, FrameSink):
            return None
        return replace(self._sink.results, spark_types=self._schema.json())

    def emit(
        self, spark: SparkSession, job: Assignment, tasks: Sequence[TaskReport], batch: Batch
    ) -> Sequence[TaskReport] | None:
        """Hand the results to the sink; return the reports with all probes counted, None if some are not."""
        # Tasks that lost a race leave hidden files; now and then is soon enough for those.
        sweep = batch.attempt > 1 or batch.is_first or batch.number % SWEEP_EVERY == 0
        sink = self._sink
        if isinstance(sink, FrameSink):
            results = self._probe(spark, job, tasks, None, self._schema)
            if results is None:
                results = spark.createDataFrame([], self._schema)
            sink.emit(results, job.batch, sweep)
        elif placement_of(job.decision).is_shared:
            written = self._probe(spark, job, tasks, self.result_files, REPORT)
            rows = [] if written is None else written.collect()
            files = [name for row in rows for name in json.loads(bytes(row.report))]
            sink.publish(job.batch, files, sweep)
        else:
            sink.publish(job.batch, [name for task in tasks for name in task.files], sweep)
            return tasks
        return self._add_probes(job, tasks)

    def _probe(
        self,
        spark: SparkSession,
        job: Assignment,
        tasks: Sequence[TaskReport],
        results: ResultFiles | None,
        schema: StructType | str,
    ) -> DataFrame | None:
        """What built slices give, when it is read: results, or the names of files; None without new rows."""
        if not tasks:
            return None
        self._folder.write("stats/.keep", b"")
        placement, counts = placement_of(job.decision), f"{self._folder.uri}/stats"
        # The numbers of the partitions that got rows, divided over as many tasks as the placement has.
        numbers = spark.range(0, placement.partitions, 1, placement.partitions)
        numbers = numbers.filter(numbers.id.isin([task.partition for task in tasks]))
        built = replace(job, parts={**job.parts, **{task.partition: task.part for task in tasks}})
        if placement.spread == "psp":
            # Partitions that are given up keep their slices until these are dead, and are visited.
            width = max(placement.partitions, 1 + max(built.parts))
            return ring(numbers, built, width, counts, results, schema)
        return numbers.mapInArrow(ProbeTask(built, counts, results), schema)

    def _add_probes(self, job: Assignment, tasks: Sequence[TaskReport]) -> list[TaskReport] | None:
        """The reports with what was counted while the results were read; None if they were not all read."""
        built = {task.partition: task for task in tasks}
        if placement_of(job.decision).spread == "psp":
            counts = ring_counts(self._folder, job.batch, moves(job.plan), list(built))
        else:
            counts = self._read_counts(job.batch, list(built))
        if counts is None:
            return None
        visited = {number: TaskReport(number, job.part(number), BatchCounts(), {}, {}) for number in counts}
        return [
            _add(task, counts.get(number, BatchCounts())) for number, task in {**visited, **built}.items()
        ]

    def _read_counts(self, batch: int, partitions: Sequence[int]) -> dict[int, BatchCounts] | None:
        """What the tasks wrote down of their probes; None if one is missing. The files go."""
        names = {number: f"stats/{batch}-{number}.json" for number in partitions}
        files = {number: self._folder.read(name) for number, name in names.items()}
        for name in names.values():
            self._folder.delete(name)
        counts = {number: read_counts(data) for number, data in files.items() if data is not None}
        return counts if len(counts) == len(partitions) else None


def _add(task: TaskReport, probed: BatchCounts) -> TaskReport:
    seconds = {**task.seconds, "probe": task.seconds.get("probe", 0.0) + probed.hop_seconds}
    return replace(task, counts=task.counts + probed, seconds=seconds)
