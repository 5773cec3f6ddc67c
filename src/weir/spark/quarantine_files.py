"""Files of quarantined rows in the checkpoint: written by workers, published by the driver.

    weir/quarantine/
        _part-<batch>-<partition>-<stage>-<attempt>.parquet   written by a task that may fail or be repeated
        part-<batch>-<partition>-<stage>.parquet              of a batch whose results are out

Stage 0 stores the rows of a batch, the later ones probe. A repeated batch replaces its own files. Workers
import this module, so it needs no pyspark.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from weir.kernel.quarantine import Quarantine
from weir.spark.worker_files import open_output

if TYPE_CHECKING:
    from weir.spark.filesystem import Folder

_LOG = logging.getLogger("weir")
_FOLDER = "quarantine"
# A partition keeps a thousand rows of a batch; the folder keeps so many files until somebody takes them away.
MAX_FILES = 10_000


def write_quarantine(uri: str, quarantine: Quarantine, partition: int, stage: int) -> tuple[str, ...]:
    """Write what a partition left out in a stage under a hidden name; write no file if that is nothing."""
    if quarantine.is_empty:
        return ()
    name = f"_part-{quarantine.batch:09d}-{partition:04d}-{stage}-{uuid.uuid4().hex[:12]}.parquet"
    with open_output(f"{uri}/{name}") as stream:
        pq.write_table(quarantine.to_table(), stream)
    return (name,)


@dataclass(frozen=True)
class QuarantineFolder:
    """The quarantined rows of a query, in the folder of its state."""

    state: Folder

    @property
    def uri(self) -> str:
        """Where workers write."""
        return f"{self.state.uri}/{_FOLDER}"

    def publish(self, batch: int, files: Sequence[str], cleans_up: bool) -> None:
        """Make the files that workers wrote those of a batch, in place of an earlier attempt's.

        Hidden files that are left over are deleted; where there are no files, only with `cleans_up`.
        """
        if not files and not cleans_up:
            return
        there = self.state.names(_FOLDER)
        others = [name for name in there if re.match(rf"part-(?!{batch:09d}-)\d+-", name)]
        if len(others) + len(files) > MAX_FILES:
            _LOG.warning(
                "batch %d: quarantined rows are counted but not kept, since %s has %d files; "
                "move or delete them", batch, self.uri, len(others),
            )  # fmt: skip
            files = []
        names = {name: re.sub(r"^_(part-\d+-\d+-\d+)-\w+", r"\1", name) for name in files if name in there}
        for hidden, published in names.items():
            self.state.move(f"{_FOLDER}/{hidden}", f"{_FOLDER}/{published}")
        # Nobody else's files are touched.
        leftover = re.compile(rf"_part-\d+-\d+-\d+-\w+\.parquet|part-{batch:09d}-\d+-\d+\.parquet")
        for name in {*filter(leftover.fullmatch, there)} - {*names, *names.values()}:
            self.state.delete(f"{_FOLDER}/{name}")
