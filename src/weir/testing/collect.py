"""Run a job over a list source, in this process or on Spark, and collect what it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa

from weir.errors import QueryError
from weir.runtime.batch_events import listen
from weir.runtime.wall_clock import read_system_clock, use_wall_clock
from weir.testing.source import ListSource

if TYPE_CHECKING:
    from weir.local.join import LocalJoin
    from weir.spark.join import SparkJoin

T = TypeVar("T")
Row = dict[str, Any]
Job: TypeAlias = "Callable[..., LocalJoin | SparkJoin]"
# Spark keeps the progress of so many.
_MAX_SPARK_BATCHES = 100


@dataclass(frozen=True)
class Collected:
    """The results of each batch, sorted by their columns, and its progress, the section "weir" of Spark's."""

    batches: tuple[list[Row], ...]
    progress: tuple[dict[str, Any], ...]

    @property
    def rows(self) -> list[Row]:
        """The results of all batches, sorted by their columns."""
        return _sorted([row for batch in self.batches for row in batch])

    @property
    def late(self) -> dict[str, int]:
        """The rows of each stream that were dropped behind the watermark, for streams with any."""
        late: Counter[str] = Counter()
        for section in self.progress:
            late += {name: rows["numRowsDroppedByWatermark"] for name, rows in section["streams"].items()}
        return dict(late)


def run(job: Job, source: ListSource, spark: Any = None, folder: str | Path | None = None) -> Collected:
    """Run a job, a function that takes its streams by name and returns a join, and collect the results.

    Without `spark` it runs in this process, where a crash is a batch that fails and is given again. With a
    session, the rows come from files below `folder`, one micro-batch for each batch of the source, and a
    crash is a query that fails and starts again from its checkpoint.
    """
    crasher, waits = _Crasher(source.crashes), _Waits(source.waits)
    with ExitStack() as stack:
        stack.callback(listen(waits))
        stack.callback(listen(crasher))
        stack.enter_context(use_wall_clock(waits.now))
        if spark is None:
            return _run_local(job, source, crasher)
        if folder is None:
            raise QueryError("on Spark a folder is needed for rows, checkpoint and results, like tmp_path")
        return _run_on_spark(job, source, crasher, spark, Path(folder))


def _run_local(job: Any, source: ListSource, crasher: _Crasher) -> Collected:
    if any("spark_commit" in phases for phases in source.crashes.values()):
        raise QueryError(
            "in one process there is no checkpoint to start from: a crash at 'spark_commit' needs Spark"
        )
    query = job(**source.schemas).start()
    batches = []
    for batch in source.batches:
        results = crasher.repeat(partial(query.process, batch))
        batches.append((results, query.lastProgress["weir"]))
    return _collect(batches)


def _run_on_spark(job: Any, source: ListSource, crasher: _Crasher, spark: Any, folder: Path) -> Collected:
    from weir.spark.testing import read_results, run_available, stream_files  # Spark need not be installed

    count = len(source.batches)
    if count > _MAX_SPARK_BATCHES:
        raise QueryError(f"on Spark a test has at most {_MAX_SPARK_BATCHES} batches; got {count}")
    streams = stream_files(spark, source.schemas, source.batches, folder)
    progress: dict[int, dict[str, Any]] = {}
    crasher.repeat(lambda: run_available(job(**streams), folder, progress))
    return _collect([(read_results(folder, batch), progress[batch]) for batch in range(count)])


def _collect(batches: Sequence[tuple[pa.Table, dict[str, Any]]]) -> Collected:
    results, progress = zip(*batches, strict=True) if batches else ((), ())
    return Collected(tuple(_sorted(table.to_pylist()) for table in results), progress)


def _sorted(rows: list[Row]) -> list[Row]:
    """Rows by their values, column by column, NULL first; values without an order go by their text."""
    try:
        return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])
    except TypeError:
        return sorted(rows, key=lambda row: [str(value) for value in row.values()])


class _Waits:
    """A listener that keeps a wall clock: the system's, and all waits up to the batch that is decided."""

    def __init__(self, waits: Mapping[int, int]) -> None:
        self._waits, self._waited = waits, 0

    def __call__(self, phase: str, batch: int) -> None:
        if phase == "decide":
            self._waited = sum(length for before, length in self._waits.items() if before <= batch)

    def now(self) -> int:
        return read_system_clock() + self._waited


class _Crasher:
    """A listener that makes batches fail at phases, each once, one phase an attempt."""

    def __init__(self, phases: Mapping[int, Sequence[str]]) -> None:
        self._left = {batch: list(names) for batch, names in phases.items()}
        self._has_crashed = False

    def __call__(self, phase: str, batch: int) -> None:
        left = self._left.get(batch)
        if left and left[0] == phase:
            left.pop(0)
            self._has_crashed = True
            raise ConnectionAbortedError(f"a crash at '{phase}' of batch {batch}, as the test wants it")

    def repeat(self, work: Callable[[], T]) -> T:
        while True:
            self._has_crashed = False
            try:
                return work()
            except Exception:
                if not self._has_crashed:
                    raise
