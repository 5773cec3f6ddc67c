"""The hops of a plan as a network: what the policies divide a budget over.

    stream a ──> [a probes b] ──┐
                                ├──> state (a b) ──> [(a b) probes c] ──> results
    stream b ──> [b probes a] ──┘         │
                                          v
    stream c ───────────────────> [c probes (a b)] ─────────────────────> results

A link in brackets makes some probes a second; each gives `productivity` partials (Mukherji et al. 2011,
equation 3), which the next link may probe with. An input path (section 4.1) leads from one stream to the
root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul

from weir.stats.hop import Hop

# How many rows each state holds, by the name of its node.
Sizes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Link:
    """One hop: how many partials a probe gives, where its probes come from, and where its partials go.

    Probes come from a stream (`rate` rows a second) or from the links `sources`. Partials go to the next
    link of the same join, or into the state `feeds` and on from there; those of the last link are results.
    """

    hop: Hop
    productivity: float
    rate: float
    sources: tuple[int, ...]
    feeds: str | None
    is_last: bool
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Path:
    """A stream's links to the root (Mukherji et al. 2011, definition 3), and what a probe of each costs."""

    stream: str
    rate: float
    links: tuple[int, ...]
    productivities: tuple[float, ...]
    feeds: tuple[str | None, ...]
    costs: tuple[float, ...]

    @property
    def cardinalities(self) -> tuple[float, ...]:
        """φ_j: partials after hop j for each row of the stream (Mukherji et al. 2011, equation 5)."""
        return tuple(accumulate(self.productivities, mul))

    @property
    def cost(self) -> float:
        """Cost of the probes all along the path per row of the stream (Mukherji et al. 2011, equation 6)."""
        probes = (1.0, *self.cardinalities[:-1])
        return sum(cost * count for cost, count in zip(self.costs, probes, strict=True))

    @property
    def productivity(self) -> float:
        """Results for what one probe anywhere along the path costs (Mukherji et al. 2011, equation 8)."""
        return self.cardinalities[-1] / self.cost

    def divide(self, resources: float) -> tuple[float, ...]:
        """The probes of each hop when the path gets `resources` (Mukherji et al. 2011, equation 7)."""
        first = resources / self.cost
        return (first, *(first * partials for partials in self.cardinalities[:-1]))

    def count_inserts(self, resources: float) -> dict[str, float]:
        """The rows that enter each state along the path when the path gets `resources`."""
        first = resources / self.cost
        fed = zip(self.feeds, self.cardinalities, strict=True)
        return {state: first * partials for state, partials in fed if state is not None}


@dataclass(frozen=True, slots=True)
class HopNetwork:
    """All links, sources before the links they feed, and the path of every stream.

    `row_window_states` are the intermediate states with row windows: only these keep old rows when nothing
    feeds them.
    """

    links: tuple[Link, ...]
    paths: tuple[Path, ...]
    sizes: Sizes
    row_window_states: frozenset[str] = frozenset()

    def subtract(self, resources: Mapping[str, float]) -> HopNetwork:
        """The network with the rates that are left once each stream's path has used `resources`."""
        paths = tuple(
            replace(path, rate=max(0.0, path.rate - resources.get(path.stream, 0.0) / path.cost))
            for path in self.paths
        )
        return replace(self, paths=paths)

    @property
    def states(self) -> tuple[str, ...]:
        """Staleness susceptible states: only other joins fill them (Mukherji et al. 2011, section 4.2)."""
        return tuple(dict.fromkeys(link.feeds for link in self.links if link.feeds is not None))
