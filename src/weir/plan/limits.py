"""What a plan may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class Limits:
    """CPU seconds each second, and memory in the graph's unit; infinite is no limit."""

    cpu: float = math.inf
    memory: float = math.inf

    def __post_init__(self) -> None:
        for what, value in (("CPU", self.cpu), ("memory", self.memory)):
            if math.isnan(value):
                raise QueryError(f"the {what} limit of a plan must be a number; got {value}")

    def allow(self, cpu: float, memory: float) -> bool:
        """True if both fit."""
        return cpu <= self.cpu and memory <= self.memory

    def less(self, cpu: float, memory: float) -> Limits:
        """What is left when some is taken."""
        return Limits(self.cpu - cpu, self.memory - memory)

    def excess(self, cpu: float, memory: float) -> float:
        """How many times over the tighter limit: at most 1 if both fit."""
        return max(_share(cpu, self.cpu), _share(memory, self.memory))


NO_LIMITS = Limits()


def _share(taken: float, limit: float) -> float:
    if math.isinf(limit):
        return 0.0
    return taken / limit if limit > 0 else math.inf
