"""Limits on what a plan may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class Limits:
    """CPU seconds per second, and memory in the graph's unit; infinite means no limit."""

    cpu: float = math.inf
    memory: float = math.inf

    def __post_init__(self) -> None:
        for what, value in (("CPU", self.cpu), ("memory", self.memory)):
            if math.isnan(value):
                raise QueryError(f"the {what} limit of a plan must be a number; got {value}")

    def allow(self, cpu: float, memory: float) -> bool:
        """True if both are within their limits."""
        return cpu <= self.cpu and memory <= self.memory

    def excess(self, cpu: float, memory: float) -> float:
        """The use of the tighter limit, as a multiple of it: at most 1 if both fit."""
        pairs = ((cpu, self.cpu), (memory, self.memory))
        uses = (used / most if most > 0 else math.inf for used, most in pairs if not math.isinf(most))
        return max(uses, default=0.0)


NO_LIMITS = Limits()
