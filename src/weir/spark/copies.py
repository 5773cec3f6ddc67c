"""Each row once for every key by which its stream is stored (`spread="hash"` per hop)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.kernel import Homes, Program
from weir.spark.union import COPY, PARTITION, STREAM, Slots


@dataclass(frozen=True)
class CopyTask:
    """Rows of the union in, their copies out, each with its partition.

    A worker does it: partials are sent by the codes that the kernel makes of keys, and Spark has none such.
    """

    program: Program
    homes: Homes
    slots: Slots

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows stream by stream and copy by copy; the first copy is counted."""
        for batch in batches:
            streams = batch.column(STREAM).to_numpy()
            for number in np.unique(streams).tolist():
                mine = batch.take(pa.array(np.flatnonzero(streams == number)))
                name = self.slots.streams[number]
                rows = self.slots.restored(name, pa.Table.from_batches([mine]))
                for copy, partitions in enumerate(self.homes.of_rows(self.program, name, rows)):
                    found = _with(mine, PARTITION, partitions.astype(np.int32))
                    yield _with(found, COPY, np.full(mine.num_rows, copy, np.int32))


def _with(batch: pa.RecordBatch, name: str, values: npt.NDArray[np.int32]) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index(name), name, pa.array(values))
