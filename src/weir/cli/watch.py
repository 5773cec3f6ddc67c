"""A running query, batch by batch: what it did, told in a line each or as a live table."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

if TYPE_CHECKING:
    from weir.spark.query import SparkQuery

_PAUSE_SECONDS = 0.25
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """What one batch did; `results` and `shed` are None if the sink did not read all, `lag` if nothing came.

    `recall` is None as long as it is not known.
    """

    batch: int
    rows: int
    results: int | None
    seconds: float
    state_rows: int
    state_bytes: int
    late: int
    lag: float | None
    shed: int | None
    recall: float | None

    @staticmethod
    def of(progress: Mapping[str, Any]) -> Figures:
        """The figures of an entry of `recentProgress`."""
        joined = progress["weir"]
        newest, watermark = joined.get("newest") or {}, joined["watermark"]
        known = watermark is not None and bool(newest)
        return Figures(
            batch=progress["batchId"],
            rows=progress["numInputRows"],
            results=joined["numOutputRows"],
            seconds=progress["durationMs"]["triggerExecution"] / 1000,
            state_rows=sum(state["numRowsTotal"] for state in joined["state"].values()),
            state_bytes=sum(state["memoryUsedBytes"] for state in joined["state"].values()),
            late=sum(stream["numRowsDroppedByWatermark"] for stream in joined["streams"].values()),
            lag=(max(newest.values()) - watermark) / 1_000_000 if known else None,
            shed=joined["numRowsShed"],
            recall=joined["estimatedRecall"],
        )

    def cells(self, trigger: int | None) -> dict[str, str]:
        """The figures as text, under their headings; `trigger` is in microseconds."""
        allowed = f" of {trigger / 1_000_000:g}" if trigger else ""
        return {
            "batch": f"{self.batch}",
            "in/s": _rate(self.rows, self.seconds),
            "out/s": "?" if self.results is None else _rate(self.results, self.seconds),
            "seconds": f"{self.seconds:.2f}{allowed}",
            "state rows": f"{self.state_rows:,}",
            "state MiB": f"{self.state_bytes / 2**20:,.1f}",
            "late": f"{self.late:,}",
            "lag s": "?" if self.lag is None else f"{self.lag:,.1f}",
            "shed": "?" if self.shed is None else f"{self.shed:,}",
            "recall": "?" if self.recall is None else f"{self.recall:.0%}",
        }


def batches(query: SparkQuery, stopping: Event) -> Iterator[dict[str, Any]]:
    """The progress of every batch as it ends, until the query ends or `stopping` is set."""
    from weir.spark.script import has_ended  # only who has Spark needs it

    seen = -1
    while True:
        ended = stopping.is_set() or has_ended(query, _PAUSE_SECONDS)
        last = query.lastProgress
        if last is not None and last["batchId"] > seen:
            for progress in query.recentProgress:
                if progress["batchId"] > seen and progress["weir"] is not None:
                    seen = progress["batchId"]
                    yield progress
        if ended:
            return


@contextmanager
def stop_requests() -> Iterator[Event]:
    """An event that Ctrl-C or SIGTERM sets; a second one ends the program at once."""
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
def display(console: Console, trigger: int | None) -> Iterator[Callable[[Figures], None]]:
    """Show figures: on a terminal the last batches as a live table, elsewhere a line for each."""
    if not console.is_terminal:
        yield lambda figures: console.print(_line(figures.cells(trigger)), highlight=False, soft_wrap=True)
        return
    recent: list[Figures] = []
    with Live(console=console, auto_refresh=False) as live:

        def show(figures: Figures) -> None:
            recent.append(figures)
            del recent[:-_SHOWN]
            live.update(_table([one.cells(trigger) for one in recent]), refresh=True)

        yield show


def _line(cells: Mapping[str, str]) -> str:
    return "  ".join(f"{heading} {text}" for heading, text in cells.items())


def _table(rows: list[dict[str, str]]) -> Table:
    table = Table()
    for heading in rows[0]:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row.values())
    return table


def _rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}" if seconds else "?"
