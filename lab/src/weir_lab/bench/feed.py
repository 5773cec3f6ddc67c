"""Three streams as folders of parquet files, one file per stream and second."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

STREAMS = ("a", "b", "c")
SCHEMA = "ts timestamp, k bigint, x double"
_SECOND = 1_000_000
# Spark's first watermark is 1970, and a row of that very moment would be late.
START = 1_700_000_000
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Feed:
    """So many rows a second on each stream, every key as often as any other, times spread evenly.

    Times are multiples of `time_step`, in microseconds. One row of each `late_every` is written with the rows
    of the next second; 0: none is.
    """

    rows_per_second: int
    keys: int
    seed: int = 0
    time_step: int = 1
    late_every: int = 0

    def second(self, stream: str, number: int) -> pa.Table:
        """The rows of one second of a stream; always the same ones.

        >>> Feed(rows_per_second=4, keys=2).second("a", 7).num_rows
        4
        """
        rows = self.rows_per_second
        rng = np.random.default_rng((self.seed, STREAMS.index(stream), number))
        times = (START + number) * _SECOND + self._offsets()
        keys = rng.permutation((np.arange(rows) + number * rows) % self.keys)
        return pa.table({"ts": pa.array(times).cast(_TIME), "k": keys, "x": rng.random(rows)})

    def write(self, folder: Path, seconds: range) -> None:
        """The files of some seconds of all streams, complete when they appear under their names."""
        for number in seconds:
            for stream in STREAMS:
                target = folder / stream / file_of(number)
                target.parent.mkdir(parents=True, exist_ok=True)
                hidden = target.with_name(f"_{target.name}")
                pq.write_table(self._arriving(stream, number), hidden)
                # Spark takes files in the order of their times.
                os.utime(hidden, (START + number, START + number))
                hidden.rename(target)

    def _arriving(self, stream: str, number: int) -> pa.Table:
        """The rows that are written with those of a second."""
        rows = self.second(stream, number)
        if not self.late_every:
            return rows
        late = pa.array(np.arange(rows.num_rows) % self.late_every == 0)
        in_time = rows.filter(pc.invert(late))
        return (
            pa.concat_tables([in_time, self.second(stream, number - 1).filter(late)]) if number else in_time
        )

    def rows_alive(self, last: int, window_seconds: int) -> int:
        """Rows inside the windows when the seconds up to `last` have come and the watermark is their end."""
        offsets = self._offsets()
        newest = last * _SECOND + int(offsets[-1])
        oldest = max(0, newest - window_seconds * _SECOND + 1)
        whole = last - oldest // _SECOND
        times = (oldest // _SECOND) * _SECOND + offsets
        return len(STREAMS) * (whole * self.rows_per_second + int((times >= oldest).sum()))

    def _offsets(self) -> np.ndarray[Any, Any]:
        """The times of a second's rows, from its beginning."""
        even = np.arange(self.rows_per_second) * _SECOND // self.rows_per_second
        return even // self.time_step * self.time_step


def hand_over(source: Path, target: Path, seconds: Sequence[int], names: Sequence[str] = STREAMS) -> None:
    """Let the files of some seconds appear in another folder, as links."""
    for number in seconds:
        for stream in names:
            (target / stream).mkdir(parents=True, exist_ok=True)
            os.link(source / stream / file_of(number), target / stream / file_of(number))


def streams(
    spark: Any,
    folder: Path,
    files_per_trigger: int | None = None,
    schema: Any = SCHEMA,
    names: Sequence[str] = STREAMS,
) -> dict[str, Any]:
    """The folders as streaming DataFrames."""
    frames = {}
    for stream in names:
        (folder / stream).mkdir(parents=True, exist_ok=True)
        reader = spark.readStream.schema(schema)
        if files_per_trigger is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_trigger)
        frames[stream] = reader.parquet(str(folder / stream))
    return frames


def file_of(number: int) -> str:
    """The name of a second's file."""
    return f"second-{number:06d}.parquet"
