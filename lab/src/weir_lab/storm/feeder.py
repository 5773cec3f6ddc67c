"""Feed files in real time, one per stream and tick; a file appears whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from weir_lab.storm.streams import STREAMS, Streams

# Files are there this share of an interval before the trigger that takes them.
_AHEAD = 0.25
_LOOK = 0.05


def write(streams: Streams, folder: Path) -> list[int]:
    """Write all files of a run where no query reads them; return the rows of each tick."""
    return [write_tick(streams, tick, folder) for tick in range(streams.schedule.ticks)]


def write_tick(streams: Streams, tick: int, folder: Path) -> int:
    """Write the files of one tick; return how many rows they have."""
    rows = 0
    for stream in STREAMS:
        (folder / stream).mkdir(parents=True, exist_ok=True)
        table = streams.table(stream, tick)
        pq.write_table(table, folder / stream / file_of(tick))
        rows += table.num_rows
    return rows


@dataclass(frozen=True, slots=True)
class Feeder:
    """Moves files to where a query reads them; a rename makes each appear at once."""

    source: Path
    target: Path
    interval: float

    def bring(self, tick: int) -> None:
        """Bring the files of one tick now."""
        hidden = {stream: self.target / stream / f"_{file_of(tick)}" for stream in STREAMS}
        for stream, file in hidden.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            os.link(self.source / stream / file_of(tick), file)
            # Spark takes files in the order of their times.
            os.utime(file)
        # All at once, as far as that goes, so that a trigger takes whole ticks.
        for file in hidden.values():
            file.rename(file.with_name(file_of(tick)))

    def run(self, ticks: range, goes_on: Callable[[int], bool]) -> list[float]:
        """Bring one tick each interval while `goes_on`; return the wall-clock time of each."""
        # Spark's triggers are whole multiples of their interval.
        begin = (time.time() // self.interval + 2 - _AHEAD) * self.interval
        brought: list[float] = []
        for place, tick in enumerate(ticks):
            due = begin + place * self.interval
            while (left := due - time.time()) > 0:
                time.sleep(min(left, _LOOK))
            if not goes_on(tick):
                break
            self.bring(tick)
            brought.append(time.time())
        return brought


def file_of(tick: int) -> str:
    """Return the file name of a tick."""
    return f"tick-{tick:06d}.parquet"
