"""What nodes of a ring send each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weir.spread.stored import Row


@dataclass(slots=True)
class Probe:
    """An input row that purges and probes the next node, behind the build rows purged from the last one."""

    row: Row
    builds: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Partials:
    """What one probe of one node found, on its one round of the ring.

    All partials of one probe travel together. `level` is how many partners they hold, `origin` the node that
    sent them out and takes them off, `is_end` whether the last of them is the END tuple (which may stand
    alone).
    """

    row: Row
    level: int
    origin: int
    content: Any
    tuples: float
    is_end: bool
