"""Watch a running query: show the figures of each batch as a line or in a live table."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Column, Table

if TYPE_CHECKING:
    from weir.spark.query import SparkQuery

_PAUSE_SECONDS = 0.25
_TABLE_ROWS = 10


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """The figures of a batch. `results` and `shed` are None if the sink did not read all results, `recall` as
    long as it is not estimated, and `watermark_delay` (seconds) before the first watermark.
    """

    batch: int
    rows: int
    results: int | None
    seconds: float
    state_rows: int
    state_bytes: int
    late: int
    ahead: int
    watermark_delay: float | None
    shed: int | None
    recall: float | None

    @staticmethod
    def of(progress: Mapping[str, Any]) -> BatchFigures:
        """Take the figures from an entry of `recentProgress`."""
        join = progress["weir"]
        newest, watermark = join.get("newest") or {}, join["watermark"]
        has_delay = watermark is not None and bool(newest)
        return BatchFigures(
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            results=join["numOutputRows"],
            seconds=progress["durationMs"]["triggerExecution"] / 1000,
            state_rows=sum(state["numRowsTotal"] for state in join["state"].values()),
            state_bytes=sum(state["memoryUsedBytes"] for state in join["state"].values()),
            late=sum(stream["numRowsDroppedByWatermark"] for stream in join["streams"].values()),
            ahead=sum(stream["numRowsAhead"] for stream in join["streams"].values()),
            watermark_delay=(max(newest.values()) - watermark) / 1_000_000 if has_delay else None,
            shed=join["numRowsShed"],
            recall=join["estimatedRecall"],
        )

    def cells(self, trigger: int | None) -> dict[str, str]:
        """Format the figures by heading; `trigger` is in microseconds."""
        interval = f" of {trigger / 1_000_000:g}" if trigger else ""
        return {
            "batch": f"{self.batch}",
            "in/s": _format_rate(self.rows, self.seconds),
            "out/s": _format_rate(self.results, self.seconds),
            "seconds": f"{self.seconds:.2f}{interval}",
            "state rows": f"{self.state_rows:,}",
            "state MiB": f"{self.state_bytes / 2**20:,.1f}",
            "late": f"{self.late:,}",
            "ahead": f"{self.ahead:,}",
            "delay s": "?" if self.watermark_delay is None else f"{self.watermark_delay:,.1f}",
            "shed": "?" if self.shed is None else f"{self.shed:,}",
            "recall": "?" if self.recall is None else f"{self.recall:.0%}",
        }


def follow_batches(query: SparkQuery, stopping: Event) -> Iterator[dict[str, Any]]:
    """Yield the progress of every batch as it ends, until the query ends or `stopping` is set."""
    from weir.spark.script import wait_for_end  # needs pyspark

    seen = -1
    while True:
        ended = stopping.is_set() or wait_for_end(query, _PAUSE_SECONDS)
        last = query.lastProgress
        if last is not None and last["batchId"] > seen:
            for progress in query.recentProgress:
                if progress["batchId"] > seen and progress["weir"] is not None:
                    seen = progress["batchId"]
                    yield progress
        if ended:
            return


@contextmanager
def catch_stop_signals() -> Iterator[Event]:
    """Yield an event that Ctrl-C or SIGTERM sets; a second signal ends the program at once."""
    stopping = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def request(number: int, frame: object) -> None:
        stopping.set()
        restore()

    for number in before:
        signal.signal(number, request)
    try:
        yield stopping
    finally:
        restore()


@contextmanager
def display_batches(console: Console, trigger: int | None) -> Iterator[Callable[[BatchFigures], None]]:
    """Yield a function that shows a batch: in a live table on a terminal, else as a line."""
    if not console.is_terminal:

        def print_line(figures: BatchFigures) -> None:
            line = "  ".join(f"{heading} {text}" for heading, text in figures.cells(trigger).items())
            console.print(line, highlight=False, soft_wrap=True)

        yield print_line
        return
    recent: list[dict[str, str]] = []
    with Live(console=console, auto_refresh=False) as live:

        def show(figures: BatchFigures) -> None:
            recent.append(figures.cells(trigger))
            del recent[:-_TABLE_ROWS]
            table = Table(*(Column(heading, justify="right") for heading in recent[0]))
            for cells in recent:
                table.add_row(*cells.values())
            live.update(table, refresh=True)

        yield show


def _format_rate(count: int | None, seconds: float) -> str:
    return f"{count / seconds:,.0f}" if count is not None and seconds else "?"
