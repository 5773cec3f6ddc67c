"""Probe in a Spark job of its own: after all slices of a batch are written, or lazily for a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weir.codec import from_json
from weir.runtime.partition_batch import Assignment, TaskReport
from weir.spark.filesystem import Folder
from weir.spark.hop_shuffle import SHUFFLED_COLUMNS, HopStage
from weir.spark.task import ProbeTask, ResultFiles, StageCounts, name_counts
from weir.spark.union import shuffle_by_partition
from weir.stats.batch_counts import BatchCounts


class ProbeJob:
    """The probes of one batch whose slices are written; `tasks` are the reports of those who wrote them.

    Tasks write what they count into files, since a sink may read results twice, in part or not at all.
    """

    def __init__(
        self, spark: SparkSession, folder: Folder, assignment: Assignment, tasks: Sequence[TaskReport]
    ) -> None:
        assert assignment.decision.placement is not None, "on Spark every decision places its rows"
        self._spark, self._folder, self._tasks = spark, folder, tasks
        self._placement = assignment.decision.placement
        parts = {**assignment.parts, **{task.partition: task.part for task in tasks}}
        self._assignment = replace(assignment, parts=parts)
        self._shuffles = len(assignment.physical.query.names) - 1 if self._placement.spread == "psp" else 0

    def run(self, results: ResultFiles | None, schema: StructType | str) -> DataFrame:
        """Return a DataFrame of the results, or of reports that name the files which tasks wrote."""
        if not self._tasks:
            return self._spark.createDataFrame([], schema)
        self._folder.write("stats/.keep", b"")
        counts, partitions = f"{self._folder.uri}/stats", self._placement.partitions
        # One row for each partition that got rows of the batch, divided over as many tasks as partitions.
        numbers = self._spark.range(0, partitions, 1, partitions)
        numbers = numbers.filter(numbers.id.isin([task.partition for task in self._tasks]))
        if self._placement.spread != "psp":
            return numbers.mapInArrow(ProbeTask(self._assignment, counts, results), schema)
        # Partitions that were given up are probed until their last slice is dead.
        partitions = max(partitions, 1 + max(self._assignment.parts))
        last, partials = self._shuffles, numbers
        for number in range(last):
            stage = HopStage(self._assignment, counts, number, last, None)
            partials = shuffle_by_partition(partials.mapInArrow(stage, SHUFFLED_COLUMNS), partitions)
        return partials.mapInArrow(HopStage(self._assignment, counts, last, last, results), schema)

    def read_reports(self) -> list[TaskReport] | None:
        """Return the reports with all probes counted; None if not all results were read."""
        counts = self._read_counts()
        if counts is None:
            return None
        tasks, reports = {task.partition: task for task in self._tasks}, []
        for number, probed in counts.items():
            # Partitions that got no rows were probed by those that did.
            idle = TaskReport(number, self._assignment.part(number), BatchCounts(), {}, {})
            task = tasks.get(number, idle)
            seconds = {**task.seconds, "probe": task.seconds.get("probe", 0.0) + probed.hop_seconds}
            reports.append(replace(task, counts=task.counts + probed, seconds=seconds))
        return reports

    def _read_counts(self) -> dict[int, BatchCounts] | None:
        """Read and delete what each partition counted in all stages; None if one did not run to its end."""
        is_complete, names = True, []
        totals: dict[int, BatchCounts] = {}
        partitions = [task.partition for task in self._tasks]
        for stage in range(self._shuffles + 1):
            sent_to: set[int] = set()
            for partition in partitions:
                names.append(f"stats/{name_counts(self._assignment.batch, partition, stage)}")
                data = self._folder.read(names[-1])
                if data is None:
                    is_complete = False
                    continue
                stage_counts = from_json(StageCounts, json.loads(data))
                totals[partition] = totals.get(partition, BatchCounts()) + stage_counts.counts
                sent_to.update(stage_counts.sent_to)
            partitions = sorted(sent_to)
        for name in names:
            self._folder.delete(name)
        return totals if is_complete else None
