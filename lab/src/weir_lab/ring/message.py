"""What nodes of a ring send each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weir_lab.ring.stored import Row


@dataclass(slots=True)
class Probe:
    """An input row that purges and probes the next node, behind the build rows purged from the last one."""

    row: Row
    builds: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Partials:
    """What probes of one input row found, each on its one round of the ring.

    `level` is how many partners they hold. `partials` has them by the node that sent them out and takes them
    off, `tuples` says how many they are. With `is_end` the last of them is the END tuple, which may stand
    alone.
    """

    row: Row
    level: int
    partials: dict[int, Any]
    tuples: float
    is_end: bool

    def join(self, other: Partials) -> None:
        """Take in partials of the same row and level that would wait behind these."""
        for node, content in other.partials.items():
            self.partials[node] = self.partials[node] + content if node in self.partials else content
        self.tuples += other.tuples
