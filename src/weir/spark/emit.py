"""The results of a batch whose slices are built, put out by the sink, and what was counted on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.kernel.output import result_schema
from weir.partition.placement import Placement
from weir.spark.batch_events import notify
from weir.spark.filesystem import Folder
from weir.spark.hop_shuffle import moves, ring, ring_counts
from weir.spark.job import Job
from weir.spark.report import ProbeCounts, TaskReport
from weir.spark.sinks import FrameSink, Sink
from weir.spark.task import REPORT, Assignment, ProbeTask, ResultFiles

# What each partition counted.
Told = Mapping[int, ProbeCounts]


class Emission:
    """Hands the results of each batch to the sink of a query."""

    def __init__(self, folder: Folder, job: Job, sink: Sink) -> None:
        self._folder, self._job, self._sink = folder, job, sink

    def put_out(
        self,
        spark: SparkSession,
        assignment: Assignment,
        placement: Placement,
        reports: list[TaskReport],
        repeated: bool,
    ) -> Told | None:
        """Hand the results to the sink; None if the counts are not all known."""
        notify("emit", assignment.batch)
        sink = self._sink
        if isinstance(sink, FrameSink):
            schema = from_arrow_schema(result_schema(self._job.program.query), prefer_timestamp_ntz=True)
            results = self._probed(spark, assignment, placement, reports, None, schema)
            found = spark.createDataFrame([], schema) if results is None else results
            sink.emit(found, assignment.batch, repeated)
        elif placement.is_shared:
            written = self._probed(spark, assignment, placement, reports, sink.results, REPORT)
            told = [] if written is None else written.collect()
            files = [name for row in told for name in json.loads(bytes(row.report))]
            sink.publish(assignment.batch, files, repeated)
        else:
            files = [name for report in reports for name in report.files]
            sink.publish(assignment.batch, files, repeated)
            return {report.partition: report.counts for report in reports}
        return self._probe_counts(assignment.batch, reports, placement)

    def _probed(
        self,
        spark: SparkSession,
        assignment: Assignment,
        placement: Placement,
        reports: list[TaskReport],
        results: ResultFiles | None,
        schema: StructType | str,
    ) -> DataFrame | None:
        """What built slices give, when it is read: results, or the names of files; None without new rows."""
        if not reports:
            return None
        self._folder.write("stats/.keep", b"")
        numbers, built = self._touched(spark, reports, placement), _built(assignment, reports)
        stats = f"{self._folder.uri}/stats"
        if placement.spread == "psp":
            # Partitions that are given up keep their slices until these are dead, and are visited.
            width = max(placement.partitions, 1 + max(built.parts))
            return ring(numbers, built, width, stats, results, schema)
        return numbers.mapInArrow(ProbeTask(built, stats, placement.is_shared, results), schema)

    def _touched(self, spark: SparkSession, reports: list[TaskReport], placement: Placement) -> DataFrame:
        """The numbers of the partitions that got rows, divided over as many tasks as a placement has."""
        numbers = spark.range(0, placement.partitions, 1, placement.partitions)
        return numbers.filter(numbers.id.isin([report.partition for report in reports]))

    def _probe_counts(self, batch: int, reports: list[TaskReport], placement: Placement) -> Told | None:
        built = {report.partition: report.counts for report in reports}
        if placement.spread == "psp":
            found = ring_counts(self._folder, batch, moves(self._job.program), list(built))
        else:
            found = self._told(batch, list(built))
        if found is None:
            return None
        return {number: counts + built.get(number, ProbeCounts()) for number, counts in found.items()}

    def _told(self, batch: int, touched: list[int]) -> dict[int, ProbeCounts] | None:
        """What the tasks wrote down of their probes; None if one is missing. The files go."""
        names = {number: f"stats/{batch}-{number}.json" for number in touched}
        read = {number: self._folder.read(name) for number, name in names.items()}
        for name in names.values():
            self._folder.delete(name)
        found = {n: ProbeCounts.from_json(json.loads(data)) for n, data in read.items() if data is not None}
        return found if len(found) == len(touched) else None


def _built(assignment: Assignment, reports: list[TaskReport]) -> Assignment:
    """The assignment with the slices that the batch has built."""
    parts = {report.partition: report.part for report in reports}
    return replace(assignment, parts={**assignment.parts, **parts})


def summed(told: Told) -> ProbeCounts:
    """What all partitions counted together."""
    return reduce(ProbeCounts.__add__, told.values(), ProbeCounts())
