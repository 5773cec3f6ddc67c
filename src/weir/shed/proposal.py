"""What a strategy is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.plan.tree import Join
from weir.shed.allowance import Allowance
from weir.shed.expected import ShedForecast
from weir.shed.harvest_model import Directions


@dataclass(frozen=True, slots=True)
class Overload:
    """A plan, and the budget for the part of its work that can be skipped, in seconds each second.

    `fresh` has the streams whose results have to be fresher than their windows see to, in seconds.
    """

    forecast: ShedForecast
    plan: Join
    budget: float
    fresh: Mapping[str, float] = field(default_factory=dict)

    @property
    def basic_window(self) -> float:
        """The length of basic windows in seconds, of an mjoin over time windows."""
        return self.forecast.basic_window(self.plan)

    @property
    def directions(self) -> Directions:
        """The directions of an mjoin over time windows."""
        return self.forecast.directions(self.plan, self.basic_window)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The name of a strategy, the allowance that it proposes, and the results each second expected of it."""

    name: str
    allowance: Allowance
    results: float
    warnings: tuple[str, ...] = ()
