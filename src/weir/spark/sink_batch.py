"""A batch as its sink sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weir.spark.filesystem import Folder


@dataclass(frozen=True)
class SinkBatch:
    """The batch that a sink gets: its number, and the epoch of the driver that runs it.

    A sink of files writes under hidden names, and calls `before_publish` with the folder and these names
    before it renames the first; before it lists the renamed ones for readers, it calls `before_listing`. With
    `cleans_up` it looks for what earlier attempts left behind.
    """

    number: int
    epoch: int
    cleans_up: bool
    before_publish: Callable[[Folder, Sequence[str]], None]
    before_listing: Callable[[], None]
