"""Streams of noisy images of scenes seen by several cameras (Wang and Rundensteiner 2009, section 8.1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weir_lab.bench.feed import START, file_of

SCHEMA = "ts timestamp, k int, image binary"
# A pixel differs by less than this on average between two images of a scene, by far more between two scenes.
_LIKE = 20
# Two images match with the selectivity of Wang and Rundensteiner 2009, 0.05: one scene in twenty.
_SCENES = 20
_NOISE = 25


@dataclass(frozen=True, slots=True)
class Images:
    """So many images a second on each stream, with Poisson arrivals; a pixel is three bytes."""

    rows_per_second: float
    pixels: int
    seconds_per_file: int = 1
    seed: int = 0

    def rows(self, stream: int, number: int) -> pa.Table:
        """The images of one file of a stream; always the same ones.

        >>> Images(rows_per_second=4, pixels=10).rows(0, 7).column_names
        ['ts', 'k', 'image']
        """
        rng = np.random.default_rng((self.seed, stream, number))
        count = int(rng.poisson(self.rows_per_second * self.seconds_per_file))
        begin, length = START + number * self.seconds_per_file, 1_000_000 * self.seconds_per_file
        times = begin * 1_000_000 + np.sort(rng.integers(0, length, count))
        scenes = np.random.default_rng(self.seed).integers(
            0, 255 - _NOISE, (_SCENES, 3 * self.pixels), np.uint8
        )
        noise = rng.integers(0, _NOISE, (count, 3 * self.pixels), np.uint8)
        seen = scenes[rng.integers(0, _SCENES, count)] + noise
        return pa.table(
            {
                "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                "k": pa.array(np.ones(count, np.int32)),
                "image": pa.array([row.tobytes() for row in seen], pa.binary()),
            }
        )

    def write(self, folder: Path, files: range, names: Sequence[str]) -> None:
        """Some files of all streams."""
        for number in files:
            for stream, name in enumerate(names):
                target = folder / name / file_of(number)
                target.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(self.rows(stream, number), target, compression="none", use_dictionary=False)
                # Spark takes files in the order of their times.
                os.utime(target, (START + number, START + number))


def similar(left: pa.Array, right: pa.Array) -> pa.Array:
    """Do two images differ little, pixel by pixel? What it costs is proportional to the pixels."""
    apart = np.abs(_pixels(left).astype(np.int16) - _pixels(right)).mean(axis=1)
    return pa.array(apart < _LIKE)


def _pixels(images: pa.Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    whole = pa.concat_arrays([images])
    if not len(whole):
        return np.empty((0, 1), np.uint8)
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, np.int32)[whole.offset : whole.offset + len(whole) + 1]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(len(whole), -1)
