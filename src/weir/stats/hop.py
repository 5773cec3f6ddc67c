"""Half-way joins, and the work that each does in a micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from operator import add, attrgetter


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """One half-way join: rows of `driver` on their way through `node` probe the state of `partner`."""

    driver: str
    node: str
    partner: str

    def __str__(self) -> str:
        return f"{self.driver} ⋉ {self.partner} in {self.node}"


@dataclass(slots=True)
class HopStats:
    """The work of one hop in one batch, counted while it runs.

    - `probes`: rows that probed, or need not because a later partner lacks their key; `skipped`: rows that
      reached the hop and did not, by the allowance; `capped`: rows that did not start on a path, of which
      this is the first hop, because its part of the work cap was spent.
    - `comparisons`: the candidates that the index left over; `matches`: those that passed.
    - `visited`: slices with times that the rows which probe together can reach, each for itself even if the
      batch has combined them; `narrowed`: rows that did not probe all ages, and `unvisited` the slices that
      were left out for that.
    - `sampled`, `sampled_matches`: the parts of `probes` and `matches` that an allowance samples.
    - `seconds`: CPU seconds.
    """

    probes: int = 0
    comparisons: int = 0
    matches: int = 0
    seconds: float = 0.0
    skipped: int = 0
    sampled: int = 0
    sampled_matches: int = 0
    visited: int = 0
    narrowed: int = 0
    unvisited: int = 0
    capped: int = 0

    def __add__(self, other: HopStats) -> HopStats:
        return HopStats(*map(add, _counts(self), _counts(other)))


# `dataclasses.astuple` would copy every number deeply.
_counts = attrgetter(*HopStats.__slots__)
