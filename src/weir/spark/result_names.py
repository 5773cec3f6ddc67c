"""Names of result files; they carry the query's id, so that queries may share a folder.

part-<id>-<batch>-<partition>-0.<ending>              results of a published batch
_part-<id>-<batch>-<partition>-<epoch>-<hex>.parquet  what a task writes, until the driver renames it
_batch-<id>-<batch>-<epoch>                           a folder that Spark fills, until its files are moved

Workers import this module.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

_ID = re.compile(r"[0-9a-f]{12}")
_PUBLISHED = re.compile(r"(?:.*/)?part-([0-9a-f]{12})-(\d{9,18})-[^/]*")


def make_id() -> str:
    """Return the id of a new query."""
    return uuid.uuid4().hex[:12]


def is_id(text: str) -> bool:
    """True for what `make_id` may return."""
    return _ID.fullmatch(text) is not None


def is_result(path: str) -> bool:
    """True for a published file of any query of weir's, also in a folder of partition values."""
    return _PUBLISHED.fullmatch(path) is not None


@dataclass(frozen=True)
class ResultNames:
    """The names of one query's result files.

    >>> names = ResultNames("0123456789ab")
    >>> names.publish(7, 2, "json")
    'part-0123456789ab-000000007-0002-0.json'
    >>> names.batch_of("k=1/part-0123456789ab-000000007-0002-0.json")
    7
    >>> names.batch_of("part-ba9876543210-000000007-0002-0.json")
    """

    id: str

    def hide(self, batch: int, partition: int, epoch: int) -> str:
        """Return a new name for what a task writes."""
        return f"_part-{self.id}-{batch:09d}-{partition:04d}-{epoch:04d}-{uuid.uuid4().hex[:12]}.parquet"

    def reveal(self, hidden: str) -> str:
        """Return the name under which a hidden file is published."""
        return re.sub(rf"^_(part-{self.id}-\d+-\d+)-.*\.", r"\1-0.", hidden)

    def publish(self, batch: int, number: int, ending: str) -> str:
        """Return the name of a file of results; `number` tells those of a batch apart."""
        return f"part-{self.id}-{batch:09d}-{number:04d}-0.{ending}"

    def name_folder(self, batch: int, epoch: int) -> str:
        """Return the name of the folder into which Spark writes a batch."""
        return f"_batch-{self.id}-{batch:09d}-{epoch:04d}"

    def batch_of(self, path: str) -> int | None:
        """Return the batch of a published file of this query, also in a folder of partition values."""
        published = _PUBLISHED.fullmatch(path)
        return int(published[2]) if published is not None and published[1] == self.id else None

    def is_published(self, path: str, batch: int) -> bool:
        """True for a published file of a batch of this query, also in a folder of partition values."""
        return self.batch_of(path) == batch

    def is_hidden(self, name: str, epoch: int | None = None) -> bool:
        """True for what drivers up to an epoch, or all, have not published, or not yet."""
        hidden = re.fullmatch(rf"_(?:part-{self.id}-\d+|batch-{self.id})-\d+-(\d+)(-.*)?", name)
        return hidden is not None and (epoch is None or int(hidden[1]) <= epoch)
